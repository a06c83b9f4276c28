//! The descriptions of all parameters and headers.

use serde_json::{Map, Value, json};

use crate::declare::schema::{boolean, duration_like, integer, one_of, time_or_ms, word};
use crate::queues::queries::{ScheduleSort, SchedulesQuery};
use crate::tasks::queries::PutMode;
use crate::text::portable::INTEGER_MAX;
use crate::values::limits::{
    FAILURE_BYTES_MAX, GROUP_BYTES_MAX, LIST_LIMIT_MAX, SCHEDULE_NAME_BYTES_MAX, TAG_BYTES_MAX,
    WORKER_BYTES_MAX,
};
use crate::{DeathReason, Existing, ForecastScale, PREVIEW_MAX, ProblemKind, TaskState};

/// The part of a request that has a parameter.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Location {
    Path,
    Query,
    Header,
}

/// A parameter of some operations.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    location: Location,
    schema: Value,
    pub(super) what: &'static str,
}

/// Declares the parameters: name, place and schema; the doc comment is the description.
macro_rules! parameters {
    ($(#[doc = $what:literal] $name:literal: $location:ident = $schema:expr;)*) => {
        /// All parameters and request headers.
        pub(super) fn parameters() -> Vec<Parameter> {
            let parameter =
                |name, location, schema, what: &'static str| Parameter { name, location, schema, what: what.trim() };
            vec![$(parameter($name, Location::$location, $schema, $what)),*]
        }
    };
}

parameters! {
    /// The name of the queue. A `/` in it is written `%2F`.
    "q": Path = queue_name();
    /// The key of the task, percent-encoded.
    "key": Path = word(256);
    /// The name of the schedule, percent-encoded.
    "name": Path = word(200);
    /// The number of the job, or of the backup.
    "id": Path = json!({ "type": "string", "pattern": "^[0-9]+$" });
    /// The last part of the `type` of a problem.
    "kind": Path = one_of(&ProblemKind::ALL.map(ProblemKind::path));
    /// `upsert`: the put replaces the live task or adds a new one. `create`: it only adds a task. `replace`: it only replaces the live task. `debounce`: as `upsert`, with a due time that `max_wait` limits. Default: `upsert`.
    "mode": Query = one_of(&PutMode::ALL.map(PutMode::name));
    /// Whether a leased task is taken from its worker. Default: false; then a leased task is a problem, 409.
    "revoke": Query = boolean();
    /// The state of the tasks.
    "state": Query = one_of(&TaskState::ALL.map(TaskState::name));
    /// The earliest due time of the tasks, in RFC 3339 or milliseconds since 1970.
    "due_from": Query = time_or_ms();
    /// The latest due time of the tasks, in RFC 3339 or milliseconds since 1970.
    "due_to": Query = time_or_ms();
    /// A tag that the tasks have.
    "tag": Query = word(TAG_BYTES_MAX);
    /// The group of the tasks.
    "group": Query = word(GROUP_BYTES_MAX);
    /// The key of the task. It is looked up, so the answer comes at once. A dead task whose key a later task took is not found by it.
    "key": Query = word(256);
    /// A text that the keys of the tasks contain. Capital and small letters differ. A page looks at 20,000 tasks or for 0.2 s, so it may have few tasks or none and still a `next_cursor`; `looked_at` says how many it looked at.
    "key_contains": Query = word(256);
    /// The reason for which the tasks were given up.
    "reason": Query = one_of(&DeathReason::ALL.map(DeathReason::name));
    /// A text that the reason of a task's last failure contains. It is searched for as with `key_contains`.
    "failure": Query = json!({ "type": "string", "minLength": 1, "maxLength": FAILURE_BYTES_MAX });
    /// The id of a group of `GET /v1/queues/{q}/dead/groups`. Its tasks are searched for as with `key_contains`.
    "group_id": Query = json!({ "type": "string", "pattern": "^[0-9a-f]{16}$" });
    /// Whether the tasks have their payloads and timelines. Default: true.
    "payloads": Query = boolean();
    /// The beginning of the names of the queues.
    "prefix": Query = json!({ "type": "string", "maxLength": 200, "pattern": "^([A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]*)?$" });
    /// A part of the names of the schedules.
    "name_contains": Query = json!({ "type": "string", "maxLength": SCHEDULE_NAME_BYTES_MAX });
    /// The order of the list. `name`: by queue, and then by name. `next`: by the next instant, the soonest first; schedules that have none are last. Default: `name`.
    "sort": Query = one_of(&ScheduleSort::ALL.map(ScheduleSort::name));
    /// Maximum number of entries on the page. Default: 100; for the list of all queues, no limit.
    "limit": Query = integer(1, LIST_LIMIT_MAX as u64);
    /// The `next_cursor` of the page before, unchanged; for an export, the text of the last complete cursor line.
    "cursor": Query = json!({ "type": "string", "minLength": 1, "maxLength": SchedulesQuery::CURSOR_BYTES_MAX });
    /// Number of instants. Default: 5.
    "count": Query = integer(1, PREVIEW_MAX as u64);
    /// The queue to which the answer is limited. Default: all queues; for them a forecast needs a token without a scope.
    "queue": Query = queue_name();
    /// The topics of the events, with commas between them: `stats`, `queues`, `jobs`, `wheel`. Default: all but `wheel`, which comes four times a second; a token with a scope does not get it.
    "topics": Query = json!({ "type": "string", "pattern": "^(stats|queues|jobs|wheel)(,(stats|queues|jobs|wheel))*$" });
    /// The name of the worker that has the tasks, as its lease calls give it; for a client of beanstalkd its address. Default: all workers.
    "worker": Query = word(WORKER_BYTES_MAX);
    /// The rule for a line whose task, settings or schedule the server has already. `skip`: the server keeps what it has; `replace`: the line replaces it; `refuse`: the import stops before the line. Default: `refuse`.
    "existing": Query = one_of(&Existing::ALL.map(Existing::name));
    /// Whether the file and the server may differ in that one of them has a virtual clock. All times of the file stay as they are. Default: false.
    "other_clock": Query = boolean();
    /// Whether the answer has the last line only. Default: false.
    "quiet": Query = boolean();
    /// The number in its file of the first line behind the header. A long file may be sent in several parts, each with the header in front. Default: 2.
    "first_line": Query = integer(2, INTEGER_MAX);
    /// `linear`: all buckets have one length. `log`: 39 buckets that end from 1 s to 100 years (of 365 days) from now. Default: `linear`.
    "scale": Query = one_of(&ForecastScale::ALL.map(ForecastScale::name));
    /// An instant in the first bucket, in RFC 3339 or milliseconds since 1970. Default: now.
    "from": Query = time_or_ms();
    /// Whether the instants of schedules are counted beside the tasks, at most 10,000 of a schedule and 50,000 of all, the nearest first. Default: false.
    "schedules": Query = boolean();
    /// Length of a bucket, `1s` or more. Default: `1m`.
    "bucket": Query = duration_like("1m");
    /// Length of the forecast after its first bucket, at most 10,080 buckets. Default: `24h`.
    "span": Query = duration_like("24h");
    /// The version that the task or schedule must have, in quotes, as the `ETag` of an answer. If it has another version, the answer is 412.
    "If-Match": Header = json!({ "type": "string", "minLength": 1, "pattern": "^(\"[0-9]{1,15}\"|[0-9]{1,15})$", "examples": ["\"41\""] });
    /// The key of the task. A second call with the same key adds no second task.
    "Idempotency-Key": Header = json!({ "type": "string", "pattern": "^(\"[ !#-~]{1,256}\"|[!#-~]([ !#-~]{0,254}[!#-~])?)$", "examples": ["order-1042"] });
    /// W3C trace context. It is kept with the task and given to its worker. A malformed value is ignored.
    "traceparent": Header = json!({ "type": "string" });
    /// Additional data of `traceparent`.
    "tracestate": Header = json!({ "type": "string" });
}

fn queue_name() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[A-Za-z0-9+/;.$_()][A-Za-z0-9+/;.$_()-]*$" })
}

impl Parameter {
    /// Whether the parameter is a part of the path.
    pub(super) fn is_in_path(&self) -> bool {
        self.location == Location::Path
    }

    /// The name of the component. `key` is a part of some paths and a parameter of some queries.
    fn component(&self) -> String {
        let is_second = self.location == Location::Query
            && parameters().iter().any(|other| other.name == self.name && other.is_in_path());
        if is_second { format!("{}_query", self.name) } else { self.name.to_owned() }
    }

    fn described(&self, required: bool) -> Value {
        let place = match self.location {
            Location::Path => "path",
            Location::Query => "query",
            Location::Header => "header",
        };
        let required = required || self.is_in_path();
        let Self { name, what, schema, .. } = self;
        json!({ "name": name, "in": place, "required": required, "description": what, "schema": schema })
    }
}

/// All parameters, as components of the OpenAPI document.
pub(super) fn all() -> Value {
    Value::Object(
        parameters().iter().map(|parameter| (parameter.component(), parameter.described(false))).collect(),
    )
}

/// A parameter of the query that a request has to have. A component is of an optional one, so this stands in its operation.
pub(super) fn required(name: &str) -> Value {
    let all = parameters();
    let found = all.iter().find(|known| known.name == name && known.location == Location::Query);
    found.expect("each is described").described(true)
}

/// A reference to a parameter of the path, or to another one.
pub(super) fn reference_to(name: &str, in_path: bool) -> Value {
    let all = parameters();
    let found = all.iter().find(|known| known.name == name && known.is_in_path() == in_path);
    let component = found.expect("each is described").component();
    json!({ "$ref": format!("#/components/parameters/{component}") })
}

/// The headers of answers.
pub(super) fn answer_headers() -> Value {
    json!({
        "ETag": { "required": true, "description": "The version, for `If-Match`.", "schema": { "type": "string", "pattern": "^\"[0-9]+\"$" } },
        "Location": { "required": true, "description": "The path of what the call created.", "schema": { "type": "string" } },
    })
}

pub(super) fn headers_of(names: &[&str]) -> Value {
    let of = |name: &&str| ((*name).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }));
    Value::Object(names.iter().map(of).collect::<Map<_, _>>())
}
