//! What is to be done again and again.

use crate::bad_request::BadRequest;
use crate::json::{self, Members, Shape};
use crate::payload::PayloadBody;
use crate::settings::LIMIT_MAX;
use crate::terms::Terms;
use crate::{duration, time, value};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

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

pub(crate) const SHAPE: Shape = Shape {
    known: &[
        "cron",
        "tz",
        "every",
        "fixed_delay",
        "start",
        "end",
        "count",
        "jitter",
        "catch_up",
        "overlap",
        "payload",
        "payload_base64",
        "content_type",
        "tags",
        "priority",
        "group",
        "retry",
        "expire_after",
    ],
    later: &[],
    elsewhere: &[
        ("timezone", "write `tz`"),
        ("interval", "write `every`"),
        ("delay", "write `every`, or `fixed_delay` to count from the end of the task before"),
        ("at", "write `start`, and `\"count\": 1` for one time; or put a task"),
        ("name", "it stands in the path: PUT /v1/queues/{q}/schedules/{name}"),
        ("queue", "it stands in the path: PUT /v1/queues/{q}/schedules/{name}"),
        ("misfire", "write `catch_up`"),
    ],
};

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

/// What becomes of instants that nobody was there for within a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// They are left out.
    Skip,
    /// The last of them is made up for.
    #[default]
    Once,
    /// Each of them is made up for.
    All,
}

/// What becomes of an instant that comes while the task of one before is still live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// It is left out.
    Skip,
    /// Its task is made when that one has ended.
    Queue,
    /// Its task is made at once.
    #[default]
    Allow,
}

impl CatchUp {
    const WORDS: [(&'static str, Self); 3] = [("skip", Self::Skip), ("once", Self::Once), ("all", Self::All)];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        named(&Self::WORDS, self)
    }
}

impl Overlap {
    const WORDS: [(&'static str, Self); 3] =
        [("skip", Self::Skip), ("queue", Self::Queue), ("allow", Self::Allow)];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        named(&Self::WORDS, self)
    }
}

fn named<T: PartialEq>(words: &[(&'static str, T)], wanted: T) -> &'static str {
    words.iter().find(|(_, value)| *value == wanted).map(|(name, _)| *name).expect("every value has a name")
}

/// The body of `PUT /v1/queues/{q}/schedules/{name}`: `{"cron": "0 2 * * *", "tz": "America/New_York", "payload": {"report": "daily"}}`.
///
/// Exactly one of `cron`, `every` and `fixed_delay` says when. At each instant a task is put with the key `name@instant` and with the payload, tags,
/// priority, group, retry policy and expiry that stand here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleSpec {
    /// At which instants.
    pub cadence: CadenceBody,
    /// At none before this one, ms since 1970. `every` and `fixed_delay` begin here; without it, so long after the put.
    pub start_ms: Option<i64>,
    /// At none after this one.
    pub end_ms: Option<i64>,
    /// So many tasks are made and then no more.
    pub count: Option<u64>,
    /// A task is due by up to so many ms later than its instant, by chance.
    pub jitter_ms: u64,
    /// What becomes of instants that are missed.
    pub catch_up: CatchUp,
    /// What becomes of instants that come too soon.
    pub overlap: Overlap,
    /// What the worker gets.
    pub payload: PayloadBody,
    /// Tags, priority, group, retry policy, expiry.
    pub terms: Terms,
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

    /// Reads the body of a request. Whether the expression and the zone can be used, the server says.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object; none or two of `cron`, `every` and `fixed_delay`; `tz` without `cron`; unknown or repeated members; values of
    /// the wrong kind or outside their limits; an `end` before the `start`.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        Self::of(&Members::read(bytes, &SHAPE)?)
    }

    fn of(members: &Members<'_>) -> Result<Self, BadRequest> {
        let instant =
            |name: &'static str| members.get(name).map(|raw| value::instant_ms(name, raw)).transpose();
        let (start_ms, end_ms) = (instant("start")?, instant("end")?);
        if let (Some(start), Some(end)) = (start_ms, end_ms)
            && end < start
        {
            return Err(BadRequest::member(
                "end",
                "is before the `start`",
                "write a later `end`, or leave it out",
            ));
        }
        let count = |raw| value::integer("count", raw, 1..=LIMIT_MAX);
        let jitter = |raw| value::duration_ms_within("jitter", raw, 0..=CADENCE_MS_MAX);
        let spec = Self {
            cadence: cadence(members)?,
            start_ms,
            end_ms,
            count: members.get("count").map(count).transpose()?,
            jitter_ms: members.get("jitter").map(jitter).transpose()?.unwrap_or(0),
            catch_up: word(members, "catch_up", &CatchUp::WORDS)?,
            overlap: word(members, "overlap", &Overlap::WORDS)?,
            payload: PayloadBody::of(members)?.unwrap_or_default(),
            terms: Terms::of(members)?,
        };
        if spec.terms.expire_after_ms.is_some_and(|ms| ms <= spec.jitter_ms) {
            let what = "is over before a task with all its `jitter` is due";
            return Err(BadRequest::member("expire_after", what, "write a longer time than the `jitter`"));
        }
        Ok(spec)
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }

    fn write<M: SerializeMap>(&self, map: &mut M, on_one_line: bool) -> Result<(), M::Error> {
        match &self.cadence {
            CadenceBody::Cron { cron, tz } => {
                map.serialize_entry("cron", cron)?;
                map.serialize_entry("tz", tz)?;
            }
            CadenceBody::Every(ms) => map.serialize_entry("every", &duration::format(*ms))?,
            CadenceBody::FixedDelay(ms) => map.serialize_entry("fixed_delay", &duration::format(*ms))?,
        }
        for (name, instant) in [("start", self.start_ms), ("end", self.end_ms)] {
            if let Some(ms) = instant {
                map.serialize_entry(name, &time::format(ms))?;
            }
        }
        if let Some(count) = self.count {
            map.serialize_entry("count", &count)?;
        }
        if self.jitter_ms > 0 {
            map.serialize_entry("jitter", &duration::format(self.jitter_ms))?;
        }
        map.serialize_entry("catch_up", self.catch_up.name())?;
        map.serialize_entry("overlap", self.overlap.name())?;
        if on_one_line {
            self.payload.write_on_one_line(map)?;
        } else {
            self.payload.write(map)?;
        }
        self.terms.write(map)
    }

    /// The same for a line of NDJSON, which has no line end inside.
    pub(crate) fn on_one_line(&self) -> impl Serialize + '_ {
        OnOneLine(self)
    }
}

/// A schedule as a line of NDJSON has it.
struct OnOneLine<'a>(&'a ScheduleSpec);

impl Serialize for OnOneLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.0.write(&mut map, true)?;
        map.end()
    }
}

impl Serialize for ScheduleSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write(&mut map, false)?;
        map.end()
    }
}

fn word<T: Copy + Default>(
    members: &Members<'_>,
    name: &'static str,
    words: &[(&str, T)],
) -> Result<T, BadRequest> {
    members.get(name).map_or_else(|| Ok(T::default()), |raw| value::word(name, raw, words))
}

fn cadence(members: &Members<'_>) -> Result<CadenceBody, BadRequest> {
    let named: Vec<&str> =
        ["cron", "every", "fixed_delay"].into_iter().filter(|name| members.get(name).is_some()).collect();
    if let [first, second, ..] = named[..] {
        let what = format!("`{first}` and `{second}` both say when");
        return Err(BadRequest::member(second, what, "keep one of them"));
    }
    let length =
        |name: &'static str, raw| value::duration_ms_within(name, raw, CADENCE_MS_MIN..=CADENCE_MS_MAX);
    let tz = members.get("tz");
    if let (Some(_), None) = (tz, members.get("cron")) {
        return Err(BadRequest::member(
            "tz",
            "means nothing without `cron`",
            "leave it out: `every` and `fixed_delay` know no wall",
        ));
    }
    if let Some(raw) = members.get("every") {
        return Ok(CadenceBody::Every(length("every", raw)?));
    }
    if let Some(raw) = members.get("fixed_delay") {
        return Ok(CadenceBody::FixedDelay(length("fixed_delay", raw)?));
    }
    let Some(raw) = members.get("cron") else {
        let hint = "add `\"cron\": \"0 2 * * *\"` with `\"tz\"`, `\"every\": \"30m\"`, or `\"fixed_delay\": \"30m\"`";
        return Err(BadRequest::body("does not say when", hint));
    };
    let cron = value::text("cron", raw, "0 2 * * *")?;
    let tz = tz.map_or_else(|| Ok("UTC".to_owned()), |raw| value::text("tz", raw, "America/New_York"))?;
    for (name, text) in [("cron", &cron), ("tz", &tz)] {
        if text.len() > CRON_BYTES_MAX {
            let what = format!("has {} bytes", text.len());
            return Err(BadRequest::member(name, what, format!("write at most {CRON_BYTES_MAX}")));
        }
    }
    Ok(CadenceBody::Cron { cron, tz })
}

/// A schedule, and how far it has come: the answer to `GET` and `PUT /v1/queues/{q}/schedules/{name}`. On the wire the members of [`ScheduleSpec`] stand
/// beside the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleBody {
    /// The queue that its tasks are put into.
    pub queue: String,
    /// Its name.
    pub name: String,
    /// The number of the owner's last change: the ETag.
    pub version: u64,
    /// When it makes its next task, ms since 1970; `None`: never again, or after the task that runs has ended.
    pub next_at_ms: Option<i64>,
    /// The last instant that a task was made of.
    pub last_at_ms: Option<i64>,
    /// Tasks made so far.
    pub made: u64,
    /// Instants left out: they were missed, the task before was still live, the key was taken, or the queue took no task. Of a cron expression
    /// those that are left out together count as one.
    pub skipped: u64,
    /// Whether a task has to end before another is made.
    pub running: bool,
    /// Instants whose turn comes when it has.
    pub waiting: u64,
    /// What its owner put.
    pub spec: ScheduleSpec,
}

const PROGRESS: [&str; 9] =
    ["queue", "name", "version", "next_at", "last_at", "made", "skipped", "running", "waiting"];

impl Serialize for ScheduleBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("queue", &self.queue)?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("version", &self.version)?;
        map.serialize_entry("next_at", &self.next_at_ms.map(time::format))?;
        map.serialize_entry("last_at", &self.last_at_ms.map(time::format))?;
        map.serialize_entry("made", &self.made)?;
        map.serialize_entry("skipped", &self.skipped)?;
        map.serialize_entry("running", &self.running)?;
        map.serialize_entry("waiting", &self.waiting)?;
        self.spec.write(&mut map, false)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for ScheduleBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Progress {
            queue: String,
            name: String,
            version: u64,
            #[serde(with = "crate::time::rfc3339_option")]
            next_at: Option<i64>,
            #[serde(with = "crate::time::rfc3339_option")]
            last_at: Option<i64>,
            made: u64,
            skipped: u64,
            running: bool,
            waiting: u64,
        }
        let members: Vec<(String, Box<RawValue>)> =
            std::collections::BTreeMap::<String, Box<RawValue>>::deserialize(deserializer)?
                .into_iter()
                .collect();
        let (progress, rest): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|(name, _)| PROGRESS.contains(&name.as_str()));
        // A later server may say more.
        let spec = rest.into_iter().filter(|(name, _)| SHAPE.known.contains(&name.as_str())).collect();
        let object = |members: Vec<(String, Box<RawValue>)>| -> Result<Vec<u8>, D::Error> {
            let members: std::collections::BTreeMap<_, _> = members.into_iter().collect();
            serde_json::to_vec(&members).map_err(D::Error::custom)
        };
        let Progress { queue, name, version, next_at, last_at, made, skipped, running, waiting } =
            serde_json::from_slice(&object(progress)?).map_err(D::Error::custom)?;
        let spec = ScheduleSpec::parse(&object(spec)?).map_err(D::Error::custom)?;
        let (next_at_ms, last_at_ms) = (next_at, last_at);
        Ok(Self { queue, name, version, next_at_ms, last_at_ms, made, skipped, running, waiting, spec })
    }
}

/// The answer to `GET /v1/queues/{q}/schedules`, in the order of the names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulesPage {
    /// The schedules.
    pub schedules: Vec<ScheduleBody>,
    /// Where the next page begins; `None` at the end.
    pub next_cursor: Option<String>,
}

/// The answer to `DELETE /v1/queues/{q}/schedules/{name}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeleteScheduleAnswer {
    /// It makes no more tasks. Those that it has made stay.
    pub result: ScheduleGone,
}

/// What became of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleGone {
    /// It is gone.
    Deleted,
}

/// The answer to `GET /v1/queues/{q}/schedules/{name}/preview`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewBody {
    /// The next ones, as far as they can be known.
    pub occurrences: Vec<OccurrenceBody>,
    /// Why there are no more of them, if there are fewer than were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One instant of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OccurrenceBody {
    /// When, in ms since 1970. With jitter the task is due up to that much later.
    #[serde(rename = "at", with = "crate::time::rfc3339")]
    pub at_ms: i64,
    /// What the wall of the zone shows then, with its offset.
    pub local: String,
    /// The key of its task.
    pub key: String,
    /// What a change of the clocks does to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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
