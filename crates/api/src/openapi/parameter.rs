//! Parameters and headers.

use serde_json::{Map, Value, json};

use super::schema::{boolean, duration_like, integer, one_of, time, time_ms, word};
use crate::{
    Existing, INTEGER_MAX, LIST_LIMIT_MAX, PREVIEW_MAX, ProblemKind, PutMode, SchedulesQuery, TAG_BYTES_MAX,
    TaskState,
};

/// Where a parameter stands.
#[derive(Copy, Clone)]
enum Place {
    Path,
    Query,
    Header,
}

/// A parameter of some operations.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    place: Place,
    schema: Value,
    pub(super) what: &'static str,
}

/// All there are.
pub(super) fn parameters() -> Vec<Parameter> {
    use Place::{Header, Path, Query};
    let queue = json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]*$" });
    let modes = PutMode::ALL.map(PutMode::name);
    let kinds: Vec<_> =
        ProblemKind::ALL.iter().map(|kind| kind.type_uri().trim_start_matches("/problems/")).collect();
    let span = || json!({ "anyOf": [time(), time_ms()] });
    let of = |name, place, schema, what| Parameter { name, place, schema, what };
    vec![
        of("q", Path, queue.clone(), "The queue. A `/` in it is written `%2F`."),
        of("key", Path, word(256), "The key, percent-encoded."),
        of("name", Path, word(200), "The name of the schedule, percent-encoded."),
        of(
            "id",
            Path,
            json!({ "type": "string", "pattern": "^[0-9]+$" }),
            "The number of the job, or of the backup.",
        ),
        of("kind", Path, one_of(&kinds), "The last part of the `type` of a problem."),
        of(
            "mode",
            Query,
            one_of(&modes),
            "`upsert` replaces the live task or makes a new one; for `create` there must be none, for `replace` one; `debounce` is an upsert that `max_wait` limits. Default: `upsert`.",
        ),
        of(
            "revoke",
            Query,
            boolean(),
            "Whether to take the task out of a worker's hands. Default: false, and 409 if a worker has it.",
        ),
        of("state", Query, one_of(&TaskState::ALL.map(TaskState::name)), "Only tasks in this state."),
        of("due_from", Query, span(), "Only tasks due then or later: RFC 3339, or milliseconds since 1970."),
        of("due_to", Query, span(), "Only tasks due then or earlier."),
        of("tag", Query, word(TAG_BYTES_MAX), "Only tasks with this tag."),
        of(
            "prefix",
            Query,
            json!({ "type": "string", "maxLength": 200, "pattern": "^([A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]*)?$" }),
            "Only queues whose name begins with this.",
        ),
        of(
            "limit",
            Query,
            integer(1, LIST_LIMIT_MAX as u64),
            "How many the page has at most. Default: 100; in the list of all queues, as many as there are.",
        ),
        of(
            "cursor",
            Query,
            json!({ "type": "string", "minLength": 1, "maxLength": SchedulesQuery::ALL_CURSOR_BYTES_MAX }),
            "The `next_cursor` of the page before, as it is; of an export, the text of its last whole cursor line.",
        ),
        of("count", Query, integer(1, PREVIEW_MAX as u64), "So many instants. Default: 5."),
        of(
            "queue",
            Query,
            queue.clone(),
            "Only what belongs to this queue. Default: of all, for which a forecast needs a token without a scope.",
        ),
        of(
            "existing",
            Query,
            one_of(&Existing::ALL.map(Existing::name)),
            "What to do about what is there already: `skip` leaves it, `replace` puts what the file says in its place, `refuse` stops before that line. Default: `refuse`.",
        ),
        of(
            "other_clock",
            Query,
            boolean(),
            "Whether a file of a virtual clock is taken by a server of real time, and the other way round. All times stay as they are in the file. Default: false.",
        ),
        of("quiet", Query, boolean(), "Whether only the last line is answered. Default: false."),
        of(
            "first_line",
            Query,
            integer(2, INTEGER_MAX),
            "The number, in its file, of the line behind the header. A long file is sent in several parts, each with the header in front. Default: 2.",
        ),
        of("bucket", Query, duration_like("1m"), "How long a bucket is, `1s` or more. Default: `1m`."),
        of(
            "span",
            Query,
            duration_like("24h"),
            "How far it reaches beyond the bucket that has begun, at most 10,080 buckets. Default: `24h`.",
        ),
        of(
            "If-Match",
            Header,
            json!({ "type": "string", "minLength": 1, "pattern": "^(\"[0-9]{1,15}\"|[0-9]{1,15})$", "examples": ["\"41\""] }),
            "Only if it has this version, in quotes: the `ETag` of an answer. Else 412.",
        ),
        of(
            "Idempotency-Key",
            Header,
            json!({ "type": "string", "pattern": "^(\"[ !#-~]{1,256}\"|[!#-~]([ !#-~]{0,254}[!#-~])?)$", "examples": ["order-1042"] }),
            "The key of the task: the same again makes no second one.",
        ),
        of(
            "traceparent",
            Header,
            json!({ "type": "string" }),
            "W3C trace context: kept with the task and given to its worker. A malformed one is as none.",
        ),
        of("tracestate", Header, json!({ "type": "string" }), "What goes with it."),
    ]
}

/// All, as components.
pub(super) fn all() -> Value {
    let described = |parameter: Parameter| {
        let Parameter { name, place, schema, what } = parameter;
        let (place, required) = match place {
            Place::Path => ("path", true),
            Place::Query => ("query", false),
            Place::Header => ("header", false),
        };
        let described =
            json!({ "name": name, "in": place, "required": required, "description": what, "schema": schema });
        (name.to_owned(), described)
    };
    Value::Object(parameters().into_iter().map(described).collect())
}

pub(super) fn reference_to(name: &str) -> Value {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

/// The headers of answers.
pub(super) fn answer_headers() -> Value {
    json!({
        "ETag": { "required": true, "description": "The version, for `If-Match`.", "schema": { "type": "string", "pattern": "^\"[0-9]+\"$" } },
        "Location": { "required": true, "description": "Where it is.", "schema": { "type": "string" } },
    })
}

pub(super) fn headers_of(names: &[&str]) -> Value {
    let of = |name: &&str| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }));
    Value::Object(names.iter().map(of).collect::<Map<_, _>>())
}
