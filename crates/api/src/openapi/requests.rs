//! The bodies of requests.

use serde_json::{Value, json};

use super::schema::{
    Member, Schema, any, boolean, duration, duration_cases, duration_like, has, integer, list, may, of,
    one_of, or_null, signed_duration, text, time, time_ms, word,
};
use crate::due::LEVELS_MAX;
use crate::query::MODES;
use crate::rate::RATE_TASKS_MAX;
use crate::schedule::CRON_BYTES_MAX;
use crate::{
    ATTEMPTS_MAX, CONTENT_TYPE_BYTES_MAX, GROUP_BYTES_MAX, HISTORY_KEYS_MAX, INTEGER_MAX, LEASE_TASKS_MAX,
    LIMIT_MAX, MOMENTS_MAX, REDRIVE_MAX, TAG_BYTES_MAX, TAGS_MAX, TOKEN_CHARS, TOKENS_MAX, TaskState,
};

/// All of them.
pub(super) fn requests() -> Vec<Schema> {
    vec![
        put(),
        post(),
        patch(),
        batch_line(),
        lease(),
        Schema::request("Ack", "Which work is done.", vec![tokens()]),
        Schema::request(
            "Nack",
            "Which work is given back.",
            vec![
                tokens(),
                may(
                    "delay",
                    duration(),
                    "Not before so long. Default: what the retry policy says, or at once.",
                ),
                may("reason", text(1_024), "What went wrong; it is kept with the task, 1,024 bytes at most."),
            ],
        ),
        Schema::request(
            "Extend",
            "Which leases go on.",
            vec![
                tokens(),
                may("lease", duration(), "So long from now, 1 s to 12 h. Default: that of the queue."),
            ],
        ),
        Schema::request(
            "Redrive",
            "Which dead tasks live again: one of the members, or none for all, 1,000 at most a call.",
            vec![
                may("key", word(256), "The dead task that this key leads to."),
                may("id", integer(1, INTEGER_MAX), "The dead task with this id."),
                may("keys", list(word(256), 1, REDRIVE_MAX), "Several keys."),
                may("ids", list(integer(1, INTEGER_MAX), 1, REDRIVE_MAX), "Several ids."),
            ],
        )
        .one_or_none(&["key", "id", "keys", "ids"]),
        Schema::request(
            "BulkCancel",
            "Which tasks are cancelled.",
            vec![
                has(
                    "filter",
                    of("Filter"),
                    "Which; `{}` is every task that is not dead, and has to be written.",
                ),
                may("dry_run", boolean(), "Say only how many there are."),
                may("revoke", boolean(), "Take those out of workers' hands that are leased."),
            ],
        ),
        bulk_move(),
        Schema::request(
            "Purge",
            "What becomes of the tasks of a queue.",
            vec![
                may("dry_run", boolean(), "Say only how many there are."),
                may("revoke", boolean(), "Take those out of workers' hands that are leased."),
            ],
        ),
        filter("Filter", &TaskState::ALL),
        filter("MoveFilter", &MOVED),
        settings(),
        Schema::request(
            "History",
            "How much is remembered of tasks that ended, whichever ends first.",
            vec![
                may("keep", or_null(duration()), "For so long, at most 365 days. Default: 24 h."),
                may("keys", or_null(integer(0, HISTORY_KEYS_MAX)), "The last so many. Default: 100,000."),
            ],
        ),
        retry(),
        Schema::request(
            "Pause",
            "How long nothing is leased.",
            vec![may(
                "for",
                or_null(duration()),
                "So long, up to 365 days. Default: until the queue is resumed.",
            )],
        ),
        Schema::request("Nothing", "Nothing: the path says it all.", vec![]),
        schedule(),
        Schema::request(
            "Moment",
            "An instant of a timeline: a time, and the payload from then on.",
            [vec![at(), at_ms()], payload()].concat(),
        )
        .exactly_one(&["at", "at_ms"])
        .one_or_none(&["payload", "payload_base64"])
        .only_with("content_type", "payload_base64"),
        Schema::request(
            "Advance",
            "How far the clock moves.",
            vec![has("by", duration(), "`0s` to 100 years.")],
        ),
    ]
}

/// The states of tasks that can be moved: the dead have no time.
const MOVED: [TaskState; 3] = [TaskState::Scheduled, TaskState::Ready, TaskState::Leased];

fn filter(name: &'static str, states: &[TaskState]) -> Schema {
    let states: Vec<_> = states.iter().map(|state| state.name()).collect();
    Schema::request(
        name,
        "Tasks that have all of these.",
        vec![
            may("state", one_of(&states), "In this state."),
            may("due_from", time_or_ms(), "Due then or later."),
            may("due_to", time_or_ms(), "Due then or earlier."),
            may("tag", word(TAG_BYTES_MAX), "With this tag."),
        ],
    )
}

fn bulk_move() -> Schema {
    Schema::request(
        "BulkMove",
        "Which tasks are moved, and where to: one of `delay`, `at`, `at_ms` and `by`.",
        vec![
            has(
                "filter",
                of("MoveFilter"),
                "Which; `{}` is every task that is not dead, and has to be written. Dead tasks do not move.",
            ),
            may("delay", duration(), "All are due at one instant: so long after the server has the request."),
            at(),
            at_ms(),
            may(
                "by",
                signed_duration(),
                "Each is due so much later than before, or earlier: `1h`, `-1h`. What would be due before now is due now.",
            ),
            may("dry_run", boolean(), "Say only how many there are."),
            may("revoke", boolean(), "Take those out of workers' hands that are leased."),
        ],
    )
    .exactly_one(&["delay", "at", "at_ms", "by"])
}

fn at() -> Member {
    may("at", time(), "Due then, RFC 3339. The past is now.")
}

fn at_ms() -> Member {
    may("at_ms", time_ms(), "Due then, milliseconds since 1970.")
}

fn due() -> Vec<Member> {
    vec![
        may(
            "delay",
            duration(),
            "Due so long after the server has the request. One of the four, or none for now.",
        ),
        at(),
        at_ms(),
        may(
            "level",
            integer(1, LEVELS_MAX.into()),
            "Due after the delay that has this place in the server's list.",
        ),
    ]
}

fn payload() -> Vec<Member> {
    vec![
        may(
            "payload",
            any(),
            "What the worker gets: any JSON that all readers take, kept byte for byte. Numbers that no 64-bit float holds or of more than 1,000 digits, half surrogate pairs and a member given twice are refused, unless the server has `--lax-json`. Default: `null`.",
        ),
        may(
            "payload_base64",
            json!({
                "type": "string", "contentEncoding": "base64",
                "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
            }),
            "What the worker gets, if it is not JSON.",
        ),
        may(
            "content_type",
            json!({ "type": "string", "maxLength": CONTENT_TYPE_BYTES_MAX, "pattern": "^[ -~]*/[ -~]*$", "examples": ["image/png"] }),
            "What those bytes are. Default: application/octet-stream.",
        ),
    ]
}

fn each_once(mut list: Value) -> Value {
    list["uniqueItems"] = json!(true);
    list
}

/// A time: of all these one, or none for now.
const WHEN: &[&str] = &["delay", "at", "at_ms", "level", "timeline"];
/// A payload: of all these one, or none for `null`.
const WHAT: &[&str] = &["payload", "payload_base64", "timeline"];

/// What goes with what in a task.
fn of_task(schema: Schema) -> Schema {
    schema.one_or_none(WHEN).one_or_none(WHAT).only_with("content_type", "payload_base64")
}

/// `null` takes an earlier value away, where there may be one.
fn terms() -> Vec<Member> {
    let gone = or_null;
    vec![
        may(
            "tags",
            each_once(list(word(TAG_BYTES_MAX), 0, TAGS_MAX)),
            "Words to find the task by, each once.",
        ),
        may("priority", integer(0, u32::MAX.into()), "Of what is due the smaller goes first. Default: 1024."),
        may("group", gone(word(GROUP_BYTES_MAX)), "What `max_in_flight_per_group` counts."),
        may(
            "retry",
            gone(of("Retry")),
            "How often and how soon it is tried again, as a whole: a member that is not named has its default. Default: that of the queue.",
        ),
        may(
            "expire_after",
            gone(duration()),
            "Given up so long after this request, of a schedule's tasks so long after their instants, unless a worker has it then. Default: never.",
        ),
    ]
}

fn timeline() -> Member {
    may(
        "timeline",
        list(of("Moment"), 1, MOMENTS_MAX),
        "Many instants in the order of time, a payload for each, in the place of time and payload.",
    )
}

fn max_wait() -> Member {
    may(
        "max_wait",
        duration(),
        "With the mode `debounce`: due so long after the first put of the row at the latest.",
    )
}

fn put() -> Schema {
    let members = [due(), vec![timeline()], payload(), terms(), vec![max_wait()]].concat();
    let what = "A task: when, what, and how. No body at all is due now with the payload `null`.";
    of_task(Schema::request("Put", what, members))
}

fn post() -> Schema {
    let members = [due(), vec![timeline()], payload(), terms()].concat();
    let what = "A task whose key the server makes: when, what, and how. No body at all is due now with the payload `null`.";
    of_task(Schema::request("Post", what, members))
}

fn patch() -> Schema {
    let members = [due(), vec![timeline()], payload(), terms()].concat();
    of_task(Schema::request("Patch", "What is to be another; what is not named stays.", members)).not_empty()
}

fn batch_line() -> Schema {
    let modes: Vec<_> = MODES.iter().map(|(name, _)| *name).collect();
    let own = vec![
        has("op", one_of(&["put", "patch", "cancel"]), "What to do."),
        has("key", word(256), "With which task."),
        may("mode", one_of(&modes), "Of a put: as the parameter of its route."),
        may("if_match", integer(1, INTEGER_MAX), "Only if the task has this version."),
        may("revoke", boolean(), "Take the task out of a worker's hands."),
    ];
    let members = [own, due(), vec![timeline()], payload(), terms(), vec![max_wait()]].concat();
    let what = "One line of a batch: a put or patch has the members of its route, too.";
    of_task(Schema::request("BatchLine", what, members))
}

fn lease() -> Schema {
    Schema::request(
        "Lease",
        "How many tasks, for how long, and how long to wait for them.",
        vec![
            may("max", integer(1, LEASE_TASKS_MAX), "At most so many. Default: 1."),
            may(
                "lease",
                duration(),
                "They are this worker's for so long, 1 s to 12 h. Default: that of the queue, 30 s.",
            ),
            may(
                "wait",
                duration_like("0s"),
                "If none is ready, wait for one so long, up to 60 s. Default: `0s`.",
            ),
        ],
    )
}

fn tokens() -> Member {
    let token = json!({ "type": "string", "minLength": TOKEN_CHARS, "maxLength": TOKEN_CHARS, "pattern": "^[A-Za-z0-9_-]{32}$" });
    has("tokens", list(token, 1, TOKENS_MAX), "Those of the leases.")
}

/// Tasks and a while. That the while is at most a day, the description says.
fn rate() -> Value {
    let pattern = format!("^([1-9][0-9]{{0,8}}|1000000000)/(ms|s|m|h|d|{})$", duration_cases());
    json!({ "type": "string", "pattern": pattern, "examples": ["5/s"] })
}

/// Also what an answer shows of a queue.
pub(super) fn settings_members() -> Vec<Member> {
    let limit = || or_null(integer(1, LIMIT_MAX));
    vec![
        may("max_in_flight", limit(), "So many tasks are in workers' hands at one time. Default: no limit."),
        may("max_in_flight_per_group", limit(), "The same for the tasks of one `group`."),
        may(
            "rate",
            or_null(rate()),
            "So many deliveries begin in such a while: `5/s`, `100/m`, `1/250ms`. Default: no limit.",
        ),
        may(
            "burst",
            or_null(integer(1, RATE_TASKS_MAX)),
            "So many at once after a quiet while. Default: as the rate has.",
        ),
        may(
            "max_backlog",
            limit(),
            "A put that would make one live task more is refused with 429. Default: no limit.",
        ),
        may(
            "default_lease",
            or_null(duration()),
            "The lease of workers who name none, 1 s to 12 h. Default: 30 s.",
        ),
        may(
            "retry",
            or_null(of("Retry")),
            "The policy of tasks without one. Default: tried for ever, at once. In a `PATCH` each member by itself: `max` follows `base` and `jitter` follows `backoff` unless they are named, and `null` for the whole is no policy.",
        ),
        may("history", or_null(of("History")), "How long `done` can be told from `not_found`."),
    ]
}

fn settings() -> Schema {
    let what = "How a queue hands its tasks out. `null` is the default.";
    Schema::request("Settings", what, settings_members())
}

fn retry() -> Schema {
    Schema::request(
        "Retry",
        "After a failure it waits, and after so many attempts the task is dead. `null` is the default.",
        vec![
            may(
                "max_attempts",
                or_null(integer(1, ATTEMPTS_MAX.into())),
                "Dead after so many. Default: never.",
            ),
            may(
                "backoff",
                or_null(one_of(&["exponential", "fixed"])),
                "Whether the wait doubles. Default: `exponential`.",
            ),
            may("base", or_null(duration()), "The first wait. Default: 1 s."),
            may(
                "max",
                or_null(duration()),
                "The longest wait. Default: 10 min, or `base` if that is longer.",
            ),
            may(
                "jitter",
                or_null(
                    json!({ "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1 }, { "type": "boolean" }] }),
                ),
                "Such a part of the wait is left out by chance. Default: 0.5, and 0 if it is fixed.",
            ),
        ],
    )
}

/// Five fields, six, or a nickname in small or capital letters; blanks around them do no harm. Which fields fire, no pattern can say.
fn cron() -> Value {
    let any_case = |name: &str| -> String {
        name.chars().map(|letter| format!("[{letter}{}]", letter.to_ascii_uppercase())).collect()
    };
    let nicknames = ["yearly", "annually", "monthly", "weekly", "daily", "hourly"].map(any_case).join("|");
    let pattern = format!("^\\s*(\\S+(\\s+\\S+){{4,5}}|@({nicknames}))\\s*$");
    json!({ "type": "string", "maxLength": CRON_BYTES_MAX, "pattern": pattern, "examples": ["0 2 * * *"] })
}

/// Also what an answer shows of a schedule.
pub(super) fn schedule_members() -> Vec<Member> {
    let own = vec![
        may(
            "cron",
            cron(),
            "At times of a wall: five fields, or six with the seconds first. One of the three.",
        ),
        may(
            "tz",
            json!({ "type": "string", "minLength": 1, "maxLength": CRON_BYTES_MAX, "examples": ["Europe/Berlin"] }),
            "With `cron`: whose wall, an IANA name. Default: UTC.",
        ),
        may("every", duration(), "So far apart, 100 ms to 100 years."),
        may("fixed_delay", duration(), "So long after the end of the task before, 100 ms to 100 years."),
        may("start", time(), "At no instant before."),
        may(
            "end",
            time(),
            "At no instant after; instants that wait for their turn and are behind a new end are left out.",
        ),
        may("count", integer(1, LIMIT_MAX), "So many tasks and then no more."),
        may("jitter", duration(), "Due up to so much later, by chance."),
        may(
            "catch_up",
            one_of(&["skip", "once", "all"]),
            "What becomes of instants missed by a minute or more. Default: `once`.",
        ),
        may(
            "overlap",
            one_of(&["skip", "queue", "allow"]),
            "What becomes of an instant while the task before is live. Default: `allow`.",
        ),
    ];
    [own, payload(), terms()].concat()
}

fn schedule() -> Schema {
    let what = "What is done again and again. Each time a task is put with the key `name@instant`.";
    Schema::request("Schedule", what, schedule_members())
        .exactly_one(&["cron", "every", "fixed_delay"])
        .only_with("tz", "cron")
        .one_or_none(&["payload", "payload_base64"])
        .only_with("content_type", "payload_base64")
}

fn time_or_ms() -> Value {
    json!({ "anyOf": [time(), time_ms()] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AckBody, BatchLine, ExtendBody, NackBody, PauseBody};

    #[test]
    fn the_members_described_are_those_that_are_read() {
        use crate::{batch, bulk, clock, dead, lease, put, retry, schedule, settings, timeline};
        let shapes = [
            ("Put", &put::SHAPE),
            ("Patch", &put::PATCH_SHAPE),
            ("BatchLine", &batch::SHAPE),
            ("Lease", &lease::SHAPE),
            ("Redrive", &dead::SHAPE),
            ("BulkCancel", &bulk::CANCEL),
            ("BulkMove", &bulk::MOVE),
            ("Purge", &bulk::PURGE),
            ("Filter", &bulk::FILTER),
            ("MoveFilter", &bulk::FILTER),
            ("Settings", &settings::SHAPE),
            ("Retry", &retry::SHAPE),
            ("Schedule", &schedule::SHAPE),
            ("Moment", &timeline::SHAPE),
            ("Advance", &clock::SHAPE),
        ];
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        for schema in requests() {
            let described = sorted(schema.members.iter().map(|member| member.name).collect());
            match shapes.iter().find(|(name, _)| *name == schema.name) {
                Some((name, shape)) => assert_eq!(described, sorted(shape.known.to_vec()), "{name}"),
                None => {
                    let bodies = ["Post", "Ack", "Nack", "Extend", "History", "Pause", "Nothing"];
                    assert!(bodies.contains(&schema.name), "{} has no shape here", schema.name);
                }
            }
        }
    }

    /// Whether a body has what the rules of its schema ask for: `allOf` of `oneOf`, `dependentRequired`, `minProperties`.
    fn follows_the_rules(schema: &Value, body: &Value) -> bool {
        let has = |name: &Value| body.get(name.as_str().expect("a name")).is_some();
        let fits = |case: &Value| {
            let forbidden = case["properties"].as_object().expect("those of the other cases");
            let required = case["required"].as_array().into_iter().flatten().all(has);
            required && !forbidden.keys().any(|name| body.get(name).is_some())
        };
        let one = |choice: &Value| {
            choice["oneOf"].as_array().expect("cases").iter().filter(|case| fits(case)).count() == 1
        };
        let members = body.as_object().expect("an object").len() as u64;
        let mut pairs = schema["dependentRequired"].as_object().into_iter().flatten();
        schema["allOf"].as_array().into_iter().flatten().all(one)
            && pairs.all(|(name, others)| {
                body.get(name).is_none() || others[0].as_str().is_some_and(|o| body.get(o).is_some())
            })
            && members >= schema["minProperties"].as_u64().unwrap_or(0)
    }

    /// All pairs of members, for each schema that has rules: what they forbid is refused, and what they allow is taken.
    #[test]
    fn what_goes_with_what_is_what_is_taken() {
        use crate::{BulkMoveBody, PatchBody, PutBody, RedriveBody, ScheduleSpec};
        let moment = json!({ "at": "2030-01-01T00:00:00Z" });
        let known = [
            ("delay", json!("1s")),
            ("at", json!("2030-01-01T00:00:00Z")),
            ("at_ms", json!(5.0)),
            ("level", json!(1)),
            ("by", json!("-1h")),
            ("timeline", json!([moment])),
            ("payload", json!(7)),
            ("payload_base64", json!("AAAA")),
            ("content_type", json!("a/b")),
            ("cron", json!("@daily")),
            ("tz", json!("Europe/Berlin")),
            ("every", json!("1h")),
            ("fixed_delay", json!("1h")),
            ("key", json!("a")),
            ("id", json!(1)),
            ("keys", json!(["a"])),
            ("ids", json!([1])),
        ];
        type Reader = fn(&[u8]) -> bool;
        let readers: [(&str, Reader); 5] = [
            ("Put", |bytes| PutBody::parse(bytes).is_ok()),
            ("Patch", |bytes| PatchBody::parse(bytes).is_ok()),
            ("Redrive", |bytes| RedriveBody::parse(bytes).is_ok()),
            ("BulkMove", |bytes| BulkMoveBody::parse(bytes).is_ok()),
            ("Schedule", |bytes| ScheduleSpec::parse(bytes).is_ok()),
        ];
        for (name, is_taken) in readers {
            let schema = requests().into_iter().find(|schema| schema.name == name).expect("it is described");
            let mine: Vec<_> = known
                .iter()
                .filter(|(name, _)| schema.members.iter().any(|member| member.name == *name))
                .collect();
            let (described, mut pairs) = (schema.value(), 0);
            for (first, value) in &mine {
                for (second, other) in &mine {
                    let mut body = json!({ (*first): value, (*second): other });
                    if name == "BulkMove" {
                        body["filter"] = json!({});
                    }
                    let allowed = follows_the_rules(&described, &body);
                    assert_eq!(is_taken(body.to_string().as_bytes()), allowed, "{name} {body}");
                    pairs += 1;
                }
            }
            assert!(pairs >= 16, "{name} has {pairs} pairs only");
            let empty = if name == "BulkMove" { json!({ "filter": {} }) } else { json!({}) };
            assert_eq!(
                is_taken(empty.to_string().as_bytes()),
                follows_the_rules(&described, &empty),
                "{name}"
            );
        }
    }

    /// Of those whose readers have no list of their own.
    #[test]
    fn the_other_members_are_read_too() {
        for name in ["Ack", "Nack", "Extend", "Pause"] {
            let schemas = requests();
            let schema = schemas.iter().find(|schema| schema.name == name).expect("it is described");
            let example = |member: &Member| match member.name {
                "tokens" => json!(["a".repeat(TOKEN_CHARS)]),
                "reason" => json!("b"),
                _ => json!("5s"),
            };
            let body: serde_json::Map<_, _> =
                schema.members.iter().map(|member| (member.name.to_owned(), example(member))).collect();
            let bytes = Value::Object(body).to_string().into_bytes();
            let is_read = match name {
                "Ack" => AckBody::parse(&bytes).is_ok(),
                "Nack" => NackBody::parse(&bytes).is_ok(),
                "Extend" => ExtendBody::parse(&bytes).is_ok(),
                _ => PauseBody::parse(&bytes).is_ok(),
            };
            assert!(is_read, "{name}");
        }
        assert!(
            BatchLine::parse(br#"{"op":"put","key":"a","mode":"create","if_match":1,"revoke":true}"#).is_ok()
        );
    }
}
