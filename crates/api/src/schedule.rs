//! What is to be done again and again.

use crate::INTEGER_MAX;
use crate::bad_request::BadRequest;
use crate::body::{Meaning, Slots, body};
use crate::choice::choice;
use crate::kind::{Kind, choice, count, duration, flag, instant, key, list, number, object, or_null, text};
use crate::openapi::schema::Rule;
use crate::part::{flat, has, may, members_of, or, some, some_or, unless};
use crate::payload::{Null, PayloadBody, payload};
use crate::settings::LIMIT_MAX;
use crate::terms::Terms;
use serde_json::{Value as Json, json};

/// The name of a schedule has 1 to 200 bytes.
pub const SCHEDULE_NAME_BYTES_MAX: usize = 200;
/// The shortest `every` and `fixed_delay`, ms.
pub const CADENCE_MS_MIN: u64 = 100;
/// The longest, and the longest jitter: 100 years.
pub const CADENCE_MS_MAX: u64 = 100 * 365 * 86_400_000;
/// An expression has up to so many bytes.
pub(crate) const CRON_BYTES_MAX: usize = 256;
/// Occurrences in one preview: 1 to 1,000.
pub const PREVIEW_MAX: usize = 1_000;

body! {
    /// At which instants: one of `cron`, `every` and `fixed_delay`.
    #[derive(Default)]
    pub(crate) struct CadenceMembers: group {
        /// At times of a wall: five fields, or six with the seconds first. One of the three.
        cron: Option<String> = may(text(CRON_BYTES_MAX, "0 2 * * *").checked(is_short).described(cron));
        /// With `cron`: whose wall, an IANA name. Default: UTC.
        tz: Option<String> = may(text(CRON_BYTES_MAX, "America/New_York").checked(is_short).described(tz));
        /// So far apart, 100 ms to 100 years.
        every: Option<u64> = may(duration().within(CADENCE_MS_MIN, CADENCE_MS_MAX));
        /// So long after the end of the task before, 100 ms to 100 years.
        fixed_delay: Option<u64> = may(duration().within(CADENCE_MS_MIN, CADENCE_MS_MAX));
    }
}

/// Five fields, six, or a nickname in small or capital letters; blanks around them do no harm. Which fields fire, no pattern can say.
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

/// At which instants something is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CadenceBody {
    /// `cron` and `tz`: whenever the wall of a zone shows times that match an expression of five fields, or six with the seconds first.
    Cron {
        /// The expression.
        cron: String,
        /// The IANA name of the zone; `UTC` if the request names none.
        tz: String,
    },
    /// `every`: so many ms apart, whatever becomes of the tasks.
    Every(u64),
    /// `fixed_delay`: so many ms after the task before has ended.
    FixedDelay(u64),
}

choice! {
    /// What becomes of instants that nobody was there for within a minute.
    #[derive(Default)]
    pub enum CatchUp {
        /// They are left out.
        Skip = "skip",
        /// The last of them is made up for.
        #[default]
        Once = "once",
        /// Each of them is made up for.
        All = "all",
    }
}

choice! {
    /// What becomes of an instant that comes while the task of one before is still live.
    #[derive(Default)]
    pub enum Overlap {
        /// It is left out.
        Skip = "skip",
        /// Its task is made when that one has ended.
        Queue = "queue",
        /// Its task is made at once.
        #[default]
        Allow = "allow",
    }
}

body! {
    /// What is done again and again. Each time a task is put with the key `name@instant`.
    ///
    /// The body of `PUT /v1/queues/{q}/schedules/{name}`: `{"cron": "0 2 * * *", "tz": "America/New_York", "payload": {"report": "daily"}}`.
    /// Exactly one of `cron`, `every` and `fixed_delay` says when. Whether the expression and the zone can be used, the server says.
    pub struct ScheduleSpec: request "Schedule" {
        /// At which instants.
        cadence: CadenceBody = some(members_of());
        /// At no instant before.
        ///
        /// `every` and `fixed_delay` begin here; without it, so long after the put.
        start_ms as "start": Option<i64> = may(instant());
        /// At no instant after; instants that wait for their turn and are behind a new end are left out.
        end_ms as "end": Option<i64> = may(instant());
        /// So many tasks and then no more.
        count: Option<u64> = may(number(1, LIMIT_MAX));
        /// Due up to so much later, by chance.
        jitter_ms as "jitter": u64 = unless(0, duration().within(0, CADENCE_MS_MAX));
        /// What becomes of instants missed by a minute or more. Default: `once`.
        catch_up: CatchUp = or(CatchUp::Once, choice());
        /// What becomes of an instant while the task before is live. Default: `allow`.
        overlap: Overlap = or(Overlap::Allow, choice());
        /// What the worker gets.
        payload: PayloadBody = some_or(Null { is_written: true }, payload());
        /// Tags, priority, group, retry policy, expiry.
        terms: Terms = flat();
    }
    example: r#"{"every": "1h"}"#;
    elsewhere: &[
        ("timezone", "write `tz`"),
        ("interval", "write `every`"),
        ("delay", "write `every`, or `fixed_delay` to count from the end of the task before"),
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
            let what = "is over before a task with all its `jitter` is due";
            return Err(BadRequest::member("expire_after", what, "write a longer time than the `jitter`"));
        }
        Ok(())
    }
}

impl Meaning for CadenceBody {
    type Members = CadenceMembers;

    fn of_members(
        members: CadenceMembers,
        _: Option<Self>,
        _: Slots<'_, '_>,
    ) -> Result<Option<Self>, BadRequest> {
        let CadenceMembers { cron, tz, every, fixed_delay } = members;
        let named =
            [("cron", cron.is_some()), ("every", every.is_some()), ("fixed_delay", fixed_delay.is_some())];
        let mut named = named.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name);
        if let (Some(first), Some(second)) = (named.next(), named.next()) {
            let what = format!("`{first}` and `{second}` both say when");
            return Err(BadRequest::member(second, what, "keep one of them"));
        }
        if tz.is_some() && cron.is_none() {
            let hint = "leave it out: `every` and `fixed_delay` know no wall";
            return Err(BadRequest::member("tz", "means nothing without `cron`", hint));
        }
        let cron = cron.map(|cron| Self::Cron { cron, tz: tz.unwrap_or_else(|| "UTC".to_owned()) });
        let cadence = cron.or(every.map(Self::Every)).or(fixed_delay.map(Self::FixedDelay));
        let hint = "add `\"cron\": \"0 2 * * *\"` with `\"tz\"`, `\"every\": \"30m\"`, or `\"fixed_delay\": \"30m\"`";
        cadence.map(Some).ok_or_else(|| BadRequest::body("does not say when", hint))
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
    /// A schedule, and how far it has come.
    ///
    /// The answer to `GET` and `PUT /v1/queues/{q}/schedules/{name}`.
    pub struct ScheduleBody: answer "ScheduleState" {
        /// The queue that its tasks are put into.
        queue: String = has(text(200, "close"));
        /// Its name.
        name: String = has(text(200, "nightly"));
        /// The number of the owner's last change: the ETag.
        version: u64 = has(number(1, INTEGER_MAX));
        /// When it makes its next task; `null`: never again, or after the task that runs has ended.
        next_at_ms as "next_at": Option<i64> = has(or_null(instant()));
        /// The last instant that a task was made of.
        last_at_ms as "last_at": Option<i64> = has(or_null(instant()));
        /// Tasks made so far.
        made: u64 = has(count());
        /// Instants left out. Of a cron expression those left out together count as one.
        ///
        /// They were missed, the task before was still live, the key was taken, or the queue took no task.
        skipped: u64 = has(count());
        /// Whether a task has to end before another is made.
        running: bool = has(flag());
        /// Instants whose turn comes when it has.
        waiting: u64 = has(count());
        /// What its owner put.
        spec: ScheduleSpec = flat();
    }
}

body! {
    /// One page of schedules.
    pub struct SchedulesPage: answer "SchedulesPage" {
        /// By queue and name.
        schedules: Vec<ScheduleBody> = has(list(object(), ""));
        /// What to send as `cursor` for the next page; `null` on the last.
        next_cursor: Option<String> = has(or_null(text(512, "")));
    }
}

body! {
    /// It makes no more tasks.
    ///
    /// The answer to `DELETE /v1/queues/{q}/schedules/{name}`.
    #[derive(Copy)]
    pub struct DeleteScheduleAnswer: answer "ScheduleDeleted" {
        /// Its tasks stay.
        result: ScheduleGone = has(choice());
    }
}

choice! {
    /// What became of a schedule.
    pub enum ScheduleGone {
        /// It is gone.
        Deleted = "deleted",
    }
}

body! {
    /// The next instants of a schedule.
    ///
    /// The answer to `GET /v1/queues/{q}/schedules/{name}/preview`.
    pub struct PreviewBody: answer "Preview" {
        /// As far as they can be known.
        occurrences: Vec<OccurrenceBody> = has(list(object(), ""));
        /// Why there are no more of them.
        note: Option<String> = may(text(1_024, ""));
    }
}

body! {
    /// One instant.
    pub struct OccurrenceBody: answer "Occurrence" {
        /// When.
        ///
        /// With jitter the task is due up to that much later.
        at_ms as "at": i64 = has(instant());
        /// What the wall of the zone shows then, with its offset.
        local: String = has(text(64, ""));
        /// The key of its task.
        key: String = has(key(""));
        /// What a change of the clocks does to it.
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
            ("{}", "the body: does not say when"),
            (r#"{"every":"1m","cron":"* * * * *"}"#, "`every`: `cron` and `every` both say when"),
            (
                r#"{"every":"1m","fixed_delay":"1m"}"#,
                "`fixed_delay`: `every` and `fixed_delay` both say when",
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
                "`expire_after`: is over before a task with all its `jitter` is due",
            ),
            (r#"{"evry":"1m"}"#, "`evry`: is not a member of this request"),
            (r#"{"every":"1m","delay":"1m"}"#, "`delay`: is not a member of this request"),
        ] {
            assert_eq!(refused(text), what, "{text}");
        }
    }
}
