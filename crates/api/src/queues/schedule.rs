//! Schedules: recurring rules that put tasks.

use crate::declare::{
    Mapped, RawMembers, Rule, ValueCodec, body, choice, count, duration, flag, flat, has, instant, key, list,
    may, members_of, number, object, or, or_made, or_null, shown, text, unless,
};
use crate::tasks::terms::Terms;
use crate::text::bad_request::BadRequest;
use crate::text::portable::INTEGER_MAX;
use crate::values::limits::{CADENCE_MS_MAX, CADENCE_MS_MIN, LIMIT_MAX};
use crate::values::payload::{PayloadBody, passed_payload};
use serde_json::{Value as Json, json};

/// Maximum length of a cron expression or a zone (bytes).
pub(crate) const CRON_BYTES_MAX: usize = 256;
/// Maximum number of occurrences in one preview.
pub const PREVIEW_MAX: usize = 1_000;

body! {
    /// The instants of a schedule: one of `cron`, `every` and `fixed_delay`.
    #[derive(Default)]
    pub(crate) struct CadenceMembers: group {
        /// A cron expression: five fields, or six with the seconds first. A schedule has one of `cron`, `every` and `fixed_delay`.
        cron: Option<String> = may(text(CRON_BYTES_MAX, "0 2 * * *").checked(is_short).described(cron));
        /// The time zone of `cron`, by its IANA name. Default: UTC.
        tz: Option<String> = may(text(CRON_BYTES_MAX, "America/New_York").checked(is_short).described(tz));
        /// The distance between two instants, 100 ms to 100 years.
        every: Option<u64> = may(duration().within(CADENCE_MS_MIN, CADENCE_MS_MAX));
        /// The time from the end of a task to the next instant, 100 ms to 100 years.
        fixed_delay: Option<u64> = may(duration().within(CADENCE_MS_MIN, CADENCE_MS_MAX));
    }
}

/// The schema of `cron`: five fields, six fields, or a nickname in small or capital letters, with or without white space around them. The pattern does not check the fields themselves.
fn cron() -> Json {
    let any_case = |name: &str| -> String {
        name.chars().map(|letter| format!("[{letter}{}]", letter.to_ascii_uppercase())).collect()
    };
    let nicknames = ["yearly", "annually", "monthly", "weekly", "daily", "hourly"].map(any_case).join("|");
    let pattern = format!("^\\s*(\\S+(\\s+\\S+){{4,5}}|@({nicknames}))\\s*$");
    json!({ "type": "string", "maxLength": CRON_BYTES_MAX, "pattern": pattern, "examples": ["0 2 * * *"] })
}

fn tz() -> Json {
    json!({ "type": "string", "minLength": 1, "maxLength": CRON_BYTES_MAX, "examples": ["Europe/Berlin"] })
}

#[expect(clippy::ptr_arg, reason = "a rule is given the value as it is")]
fn is_short(path: &str, text: &String) -> Result<(), BadRequest> {
    if text.len() <= CRON_BYTES_MAX {
        return Ok(());
    }
    let what = format!("has {} bytes", text.len());
    Err(BadRequest::member(path, what, format!("write at most {CRON_BYTES_MAX}")))
}

/// The instants of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CadenceBody {
    /// `cron` and `tz`: whenever the local time of the zone matches the expression.
    Cron {
        /// The expression of five fields, or of six with the seconds first.
        cron: String,
        /// The IANA name of the zone; `UTC` if the request names none.
        tz: String,
    },
    /// `every`: the distance between two instants (ms), independent of the tasks.
    Every(u64),
    /// `fixed_delay`: the time from the end of a task to the next instant (ms).
    FixedDelay(u64),
}

choice! {
    /// The rule for instants that the server missed by one minute or more.
    #[derive(Default)]
    pub enum CatchUp {
        /// Missed instants are left out.
        Skip = "skip",
        /// A task is put for the last missed instant only.
        #[default]
        Once = "once",
        /// A task is put for each missed instant.
        All = "all",
    }
}

choice! {
    /// The rule for an instant that comes while another task of the schedule is live.
    #[derive(Default)]
    pub enum Overlap {
        /// The instant is left out.
        Skip = "skip",
        /// The task of the instant is put when no other task of the schedule is live.
        Queue = "queue",
        /// The task of the instant is put at once.
        #[default]
        Allow = "allow",
    }
}

body! {
    /// A schedule: a recurring rule that puts a task with the key `name@instant` at each of its instants.
    ///
    /// The body of `PUT /v1/queues/{q}/schedules/{name}`: `{"cron": "0 2 * * *", "tz": "America/New_York", "payload": {"report": "daily"}}`.
    /// Exactly one of `cron`, `every` and `fixed_delay` says when. This crate does not check the expression and the zone; the server does.
    pub struct ScheduleSpec: request "Schedule" {
        /// The instants.
        cadence: CadenceBody = has(members_of());
        /// The schedule has no instants before this one. `every` and `fixed_delay` begin here; without `start`, their first instant is one interval after the put.
        start_ms as "start": Option<i64> = may(instant());
        /// The schedule has no instants after this one. If a change sets an earlier `end`, instants after it that still wait for their turn are left out.
        end_ms as "end": Option<i64> = may(instant());
        /// Number of tasks after which the schedule puts no more.
        count: Option<u64> = may(number(1, LIMIT_MAX));
        /// Each task becomes due later by a random time, at most this long.
        jitter_ms as "jitter": u64 = unless(0, duration().within(0, CADENCE_MS_MAX));
        /// The rule for instants that the server missed by one minute or more: put no task, one task for the last of them, or a task for each. Default: `once`.
        catch_up: CatchUp = or(CatchUp::Once, choice());
        /// The rule for an instant that comes while another task with the name of the schedule in its key is live: leave it out, put its task when no other one is live, or put it at once. Default: `allow`.
        overlap: Overlap = or(Overlap::Allow, choice());
        /// The payload of the tasks.
        payload: PayloadBody = or_made(PayloadBody::default, passed_payload());
        /// The terms of the tasks: tags, priority, group, retry policy and expiry.
        terms: Terms = flat();
    }
    example: r#"{"every": "1h"}"#;
    elsewhere: &[
        ("timezone", "write `tz`"),
        ("interval", "write `every`"),
        ("delay", "write `every`, or `fixed_delay` to count from the end of the last task"),
        ("at", "write `start`, and `\"count\": 1` for one time; or put a task"),
        ("name", "it stands in the path: PUT /v1/queues/{q}/schedules/{name}"),
        ("queue", "it stands in the path: PUT /v1/queues/{q}/schedules/{name}"),
        ("misfire", "write `catch_up`"),
    ];
    rules: &[
        Rule::One(&["cron", "every", "fixed_delay"]),
        Rule::With("tz", "cron"),
        Rule::OneOrNone(&["payload", "payload_base64"]),
        Rule::With("content_type", "payload_base64"),
    ];
    check: |spec: &Self, _| spec.check_span();
}

impl ScheduleSpec {
    /// A schedule without limits and with the payload `null`.
    pub fn new(cadence: CadenceBody) -> Self {
        Self {
            cadence,
            start_ms: None,
            end_ms: None,
            count: None,
            jitter_ms: 0,
            catch_up: CatchUp::default(),
            overlap: Overlap::default(),
            payload: PayloadBody::default(),
            terms: Terms::default(),
        }
    }

    fn check_span(&self) -> Result<(), BadRequest> {
        if self.start_ms.zip(self.end_ms).is_some_and(|(start, end)| end < start) {
            let hint = "write a later `end`, or leave it out";
            return Err(BadRequest::member("end", "is before the `start`", hint));
        }
        if self.terms.expire_after_ms.is_some_and(|ms| ms <= self.jitter_ms) {
            let what = "ends before a task with the whole `jitter` is due";
            return Err(BadRequest::member("expire_after", what, "write a longer time than the `jitter`"));
        }
        Ok(())
    }
}

impl Mapped for CadenceBody {
    type Members = CadenceMembers;

    fn from_members(
        members: CadenceMembers,
        _: Option<Self>,
        _: RawMembers<'_, '_>,
    ) -> Result<Self, BadRequest> {
        let CadenceMembers { cron, tz, every, fixed_delay } = members;
        let named =
            [("cron", cron.is_some()), ("every", every.is_some()), ("fixed_delay", fixed_delay.is_some())];
        let mut named = named.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name);
        if let (Some(first), Some(second)) = (named.next(), named.next()) {
            let what = format!("`{first}` and `{second}` exclude each other");
            return Err(BadRequest::member(second, what, "keep one of them"));
        }
        if tz.is_some() && cron.is_none() {
            let hint = "leave it out: only `cron` has a time zone";
            return Err(BadRequest::member("tz", "means nothing without `cron`", hint));
        }
        let cron = cron.map(|cron| Self::Cron { cron, tz: tz.unwrap_or_else(|| "UTC".to_owned()) });
        let cadence = cron.or(every.map(Self::Every)).or(fixed_delay.map(Self::FixedDelay));
        let hint = "add `\"cron\": \"0 2 * * *\"` with `\"tz\"`, `\"every\": \"30m\"`, or `\"fixed_delay\": \"30m\"`";
        cadence.ok_or_else(|| BadRequest::body("has none of `cron`, `every` and `fixed_delay`", hint))
    }

    fn to_members(&self) -> CadenceMembers {
        let none = CadenceMembers::default();
        match self.clone() {
            Self::Cron { cron, tz } => CadenceMembers { cron: Some(cron), tz: Some(tz), ..none },
            Self::Every(ms) => CadenceMembers { every: Some(ms), ..none },
            Self::FixedDelay(ms) => CadenceMembers { fixed_delay: Some(ms), ..none },
        }
    }
}

body! {
    /// A schedule and its progress.
    ///
    /// The answer to `GET` and `PUT /v1/queues/{q}/schedules/{name}`.
    pub struct ScheduleBody: answer "ScheduleState" {
        /// The queue of its tasks.
        queue: String = has(text(200, "close"));
        /// The name of the schedule.
        name: String = has(text(200, "nightly"));
        /// The version of the schedule, which grows with each change by its owner; also the `ETag`.
        version: u64 = has(number(1, INTEGER_MAX));
        /// When the schedule puts its next task; `null`: never again, or not before the running task has ended.
        next_at_ms as "next_at": Option<i64> = shown(None, or_null(instant()));
        /// Why no next instant can be found: no database of the server has its time zone, or its expression never fires. Absent: it can.
        fault: Option<String> = may(text(1_024, "`Mars/Olympus` is no time zone"));
        /// The last instant for which a task was put.
        last_at_ms as "last_at": Option<i64> = shown(None, or_null(instant()));
        /// Number of tasks put so far.
        made: u64 = has(count());
        /// Number of instants left out so far.
        ///
        /// An instant is left out if it was missed, if another task of the schedule was live, if its key was taken, or if the queue took no task.
        skipped: u64 = has(count());
        /// Whether a task of the schedule is live and must end before the next one is put.
        running: bool = has(flag());
        /// Number of instants that wait until all such tasks have ended: their tasks are not put yet.
        waiting: u64 = has(count());
        /// The schedule as its owner put it.
        spec: ScheduleSpec = flat();
    }
}

body! {
    /// One page of schedules.
    pub struct SchedulesPage: answer "SchedulesPage" {
        /// The schedules in the order that the query wants.
        schedules: Vec<ScheduleBody> = has(list(object(), ""));
        /// The `cursor` of the next page; `null` on the last page.
        next_cursor: Option<String> = shown(None, or_null(text(512, "")));
    }
}

body! {
    /// The schedule is deleted and puts no more tasks.
    ///
    /// The answer to `DELETE /v1/queues/{q}/schedules/{name}`.
    #[derive(Copy)]
    pub struct DeleteScheduleAnswer: answer "ScheduleDeleted" {
        /// The schedule is deleted. Its tasks stay.
        result: ScheduleGone = has(choice());
    }
}

choice! {
    /// The result of the deletion of a schedule.
    pub enum ScheduleGone {
        /// The schedule is deleted.
        Deleted = "deleted",
    }
}

body! {
    /// The next instants of a schedule.
    ///
    /// The answer to `GET /v1/queues/{q}/schedules/{name}/preview` and to `POST /v1/schedules/preview`.
    pub struct PreviewBody: answer "Preview" {
        /// The next instants, as far as they are known in advance.
        occurrences: Vec<OccurrenceBody> = has(list(object(), ""));
        /// Why the list has no more instants.
        note: Option<String> = may(text(1_024, ""));
    }
}

body! {
    /// One instant of a schedule.
    pub struct OccurrenceBody: answer "Occurrence" {
        /// The instant. With `jitter`, the task may become due later.
        at_ms as "at": i64 = has(instant());
        /// The local time of the zone at this instant, with its offset from UTC.
        local: String = has(text(64, ""));
        /// The key of the task. In the preview of a schedule that is not stored, the name is missing before the `@`.
        key: String = has(key(""));
        /// The effect of a change of the zone's clocks (daylight saving time) on the instant.
        note: Option<String> = may(text(1_024, ""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let refused = ScheduleSpec::parse(text.as_bytes()).expect_err(text);
        assert!(!refused.hint.is_empty());
        refused.to_string()
    }

    #[test]
    fn all_of_it_is_read_and_written() {
        let text = concat!(
            r#"{"cron":"0 2 * * *","tz":"America/New_York","start":"2030-01-01T00:00:00.000Z","end":"2031-01-01T00:00:00.000Z","#,
            r#""count":5,"jitter":"1m","catch_up":"all","overlap":"queue","payload":{"a":1},"tags":["t"],"priority":7,"#,
            r#""group":"g","retry":{"max_attempts":4,"backoff":"fixed","base":"1s","max":"10m","jitter":0.0},"expire_after":"1h"}"#,
        );
        let spec = ScheduleSpec::parse(text.as_bytes()).expect("a schedule");
        assert_eq!(String::from_utf8(spec.to_json()).expect("UTF-8"), text);
        let body = ScheduleBody {
            queue: "q".to_owned(),
            name: "nightly".to_owned(),
            version: 7,
            next_at_ms: Some(1_893_456_000_000),
            fault: None,
            last_at_ms: None,
            made: 3,
            skipped: 1,
            running: true,
            waiting: 2,
            spec,
        };
        let json = serde_json::to_string(&body).expect("JSON");
        assert!(json.contains(r#""next_at":"2030-01-01T00:00:00.000Z","last_at":null,"made":3"#), "{json}");
        assert_eq!(serde_json::from_str::<ScheduleBody>(&json).expect("a schedule"), body);
        let more = json.replacen('{', r#"{"paused":true,"#, 1);
        assert_eq!(serde_json::from_str::<ScheduleBody>(&more).expect("of a later server"), body);
    }

    #[test]
    fn what_is_absent_has_its_default() {
        let spec = ScheduleSpec::parse(br#"{"every":"30m"}"#).expect("a schedule");
        assert_eq!(spec, ScheduleSpec::new(CadenceBody::Every(1_800_000)));
        let spec = ScheduleSpec::parse(br#"{"cron":"* * * * *"}"#).expect("a schedule");
        assert_eq!(spec.cadence, CadenceBody::Cron { cron: "* * * * *".to_owned(), tz: "UTC".to_owned() });
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, what) in [
            ("{}", "the body: has none of `cron`, `every` and `fixed_delay`"),
            (r#"{"every":"1m","cron":"* * * * *"}"#, "`every`: `cron` and `every` exclude each other"),
            (
                r#"{"every":"1m","fixed_delay":"1m"}"#,
                "`fixed_delay`: `every` and `fixed_delay` exclude each other",
            ),
            (r#"{"every":"1m","tz":"UTC"}"#, "`tz`: means nothing without `cron`"),
            (r#"{"every":"1ms"}"#, "`every`: 1ms is not from 100ms to 36500d"),
            (r#"{"every":"1m","count":0}"#, "`count`: 0 is not from 1 to 1000000000"),
            (r#"{"every":"1m","catch_up":"never"}"#, "`catch_up`: `never` is not known"),
            (r#"{"every":"1m","overlap":true}"#, "`overlap`: expected a string, got true"),
            (
                r#"{"every":"1m","start":"2030-01-02T00:00:00Z","end":"2030-01-01T00:00:00Z"}"#,
                "`end`: is before the `start`",
            ),
            (
                r#"{"every":"1m","jitter":"2s","expire_after":"1s"}"#,
                "`expire_after`: ends before a task with the whole `jitter` is due",
            ),
            (r#"{"evry":"1m"}"#, "`evry`: is not a member of this request"),
            (r#"{"every":"1m","delay":"1m"}"#, "`delay`: is not a member of this request"),
        ] {
            assert_eq!(refused(text), what, "{text}");
        }
    }
}
