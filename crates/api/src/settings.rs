//! How a queue hands its tasks out.

use crate::bad_request::{BadRequest, inside};
use crate::json::{self, Members, Shape};
use crate::lease::{LEASE_MS_MAX, LEASE_MS_MIN};
use crate::rate::{RATE_TASKS_MAX, RateBody};
use crate::retry::RetryBody;
use crate::value;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The largest count that a limit may have: a thousand million.
pub const LIMIT_MAX: u64 = 1_000_000_000;
/// Ended tasks are remembered for a year at most.
pub const HISTORY_KEEP_MS_MAX: u64 = 365 * 86_400_000;
/// The most ended tasks that a queue may remember: some 200 bytes each, in memory.
pub const HISTORY_KEYS_MAX: u64 = 1_000_000;
/// The longest pause that ends by itself: one year.
pub const PAUSE_MS_MAX: u64 = 365 * 86_400_000;

pub(crate) const SHAPE: Shape = Shape {
    known: &[
        "max_in_flight",
        "max_in_flight_per_group",
        "rate",
        "burst",
        "max_backlog",
        "default_lease",
        "retry",
        "history",
    ],
    later: &["webhook"],
    elsewhere: &[
        ("paused", "use POST /v1/queues/{q}/pause and /resume"),
        ("draining", "use POST /v1/queues/{q}/drain and /resume"),
        ("concurrency", "write `max_in_flight`"),
        ("lease", "write `default_lease`"),
        ("max_attempts", "it stands in `retry`: `{\"max_attempts\": 5}`"),
        ("queue", "it stands in the path: PUT /v1/queues/{q}"),
    ],
};

/// The body of `PUT /v1/queues/{q}`: `{"max_in_flight": 3, "rate": "5/s", "default_lease": "5m"}`.
///
/// It is the whole of the settings: what is not in it, or is `null`, has its default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SettingsBody {
    /// So many tasks may be in workers' hands at one time, 1 to [`LIMIT_MAX`]. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight: Option<u64>,
    /// The same for the tasks of one group; tasks without a group are not counted. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_in_flight_per_group: Option<u64>,
    /// How many deliveries may begin in a while. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateBody>,
    /// So many may begin at once after a quiet while. Default: as many as the rate has in its while.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Puts are refused with 429 that would make a task more than so many live ones. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_backlog: Option<u64>,
    /// The lease of workers who name none, ms: 1 s to 12 h. Default: 30 s.
    #[serde(
        rename = "default_lease",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::duration::option"
    )]
    pub default_lease_ms: Option<u64>,
    /// The retry policy of tasks that have none. Default: tried for ever, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryBody>,
    /// How much is remembered of tasks that ended. Default: 24 hours and 100,000 keys. Of all queues together it is 250,000, those that ended last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<HistoryBody>,
}

/// How much is remembered of tasks that ended, whichever ends first: `{"keep": "24h", "keys": 100000}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryBody {
    /// For so long, ms, at most a year. Default: 24 hours.
    #[serde(rename = "keep", with = "crate::duration::text")]
    pub keep_ms: u64,
    /// The last so many, at most a million. Default: 100,000.
    pub keys: u64,
}

impl Default for HistoryBody {
    fn default() -> Self {
        Self { keep_ms: 86_400_000, keys: 100_000 }
    }
}

impl SettingsBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object; unknown or repeated members; values of the wrong kind or outside their limits; a burst without a rate.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        Self::default().patched(bytes)
    }

    /// These settings after a patch: a member that it has replaces the one that was, `null` gives the default back, the others stay. Another
    /// `rate` without a `burst` has the usual one. Of `retry` and `history` the members are taken one by one, too.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn patched(self, bytes: &[u8]) -> Result<Self, BadRequest> {
        let members = Members::read(bytes, &SHAPE)?;
        let burst = self.burst.filter(|_| members.get("rate").is_none());
        let lease = |raw: &_| value::duration_ms_within("default_lease", raw, LEASE_MS_MIN..=LEASE_MS_MAX);
        let count = |name: &'static str, max, before: Option<u64>| {
            patched(&members, name, before, |raw| value::integer(name, raw, 1..=max))
        };
        let body = Self {
            max_in_flight: count("max_in_flight", LIMIT_MAX, self.max_in_flight)?,
            max_in_flight_per_group: count(
                "max_in_flight_per_group",
                LIMIT_MAX,
                self.max_in_flight_per_group,
            )?,
            rate: patched(&members, "rate", self.rate, |raw| RateBody::of("rate", raw))?,
            burst: count("burst", RATE_TASKS_MAX, burst)?,
            max_backlog: count("max_backlog", LIMIT_MAX, self.max_backlog)?,
            default_lease_ms: patched(&members, "default_lease", self.default_lease_ms, lease)?,
            retry: patched(&members, "retry", self.retry, |raw| {
                self.retry.unwrap_or_default().patched("retry", raw)
            })?,
            history: patched(&members, "history", self.history, |raw| {
                self.history.unwrap_or_default().patched(raw)
            })?,
        };
        if body.burst.is_some() && body.rate.is_none() {
            let hint = "add the rate, for example `\"rate\": \"5/s\"`";
            return Err(BadRequest::member("burst", "means nothing without a `rate`", hint));
        }
        Ok(body)
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

/// A member after a patch.
fn patched<T>(
    members: &Members<'_>,
    name: &str,
    before: Option<T>,
    read: impl FnOnce(&RawValue) -> Result<T, BadRequest>,
) -> Result<Option<T>, BadRequest> {
    members.get(name).map_or(Ok(before), |raw| value::or_null(raw, read))
}

impl HistoryBody {
    fn patched(self, raw: &RawValue) -> Result<Self, BadRequest> {
        self.over(raw).map_err(|refused| inside("history", refused))
    }

    fn over(self, raw: &RawValue) -> Result<Self, BadRequest> {
        const SHAPE: Shape = Shape { known: &["keep", "keys"], later: &[], elsewhere: &[] };
        let hint = "write an object, for example `{\"keep\": \"24h\", \"keys\": 100000}`";
        let members = Members::of_value(raw, &SHAPE, hint)?;
        let (usual, before) = (Self::default(), self);
        let keep = |raw: &_| value::duration_ms_within("keep", raw, 0..=HISTORY_KEEP_MS_MAX);
        let keys = |raw: &_| value::integer("keys", raw, 0..=HISTORY_KEYS_MAX);
        Ok(Self {
            keep_ms: patched(&members, "keep", Some(before.keep_ms), keep)?.unwrap_or(usual.keep_ms),
            keys: patched(&members, "keys", Some(before.keys), keys)?.unwrap_or(usual.keys),
        })
    }
}

/// The body of `POST /v1/queues/{q}/pause`: empty, or `{"for": "10m"}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PauseBody {
    /// The pause ends by itself after so long, ms: 1 ms to a year; `None`: when the queue is resumed.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none", with = "crate::duration::option")]
    pub for_ms: Option<u64>,
}

impl PauseBody {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// Text that is no JSON object; unknown or repeated members; a length outside its limits.
    pub fn parse(bytes: &[u8]) -> Result<Self, BadRequest> {
        const SHAPE: Shape = Shape {
            known: &["for"],
            later: &["until"],
            elsewhere: &[("delay", "write `for`"), ("wait", "write `for`")],
        };
        let members = Members::read(bytes, &SHAPE)?;
        let length = |raw| value::duration_ms_within("for", raw, 1..=PAUSE_MS_MAX);
        // `null` is what is absent, as everywhere.
        let named = members.get("for").filter(|raw| raw.get() != "null");
        Ok(Self { for_ms: named.map(length).transpose()? })
    }

    /// The body as [`parse`](Self::parse) reads it.
    pub fn to_json(&self) -> Vec<u8> {
        json::write(self)
    }
}

/// Checks the body of a request that says all in its path: there is nothing in it.
///
/// # Errors
///
/// Text that is no JSON object, or one with members.
pub fn no_body(bytes: &[u8]) -> Result<(), BadRequest> {
    Members::read(bytes, &Shape { known: &[], later: &[], elsewhere: &[] }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (String, String) {
        let refused = SettingsBody::parse(text.as_bytes()).expect_err(text);
        (refused.to_string(), refused.hint)
    }

    #[test]
    fn all_of_it_is_read_and_written() {
        let text = concat!(
            r#"{"max_in_flight":3,"max_in_flight_per_group":1,"rate":"5/s","burst":9,"max_backlog":1000,"#,
            r#""default_lease":"5m","retry":{"max_attempts":4,"backoff":"fixed","base":"1s","max":"10m","jitter":0.0},"#,
            r#""history":{"keep":"1h","keys":7}}"#,
        );
        let body = SettingsBody::parse(text.as_bytes()).expect("settings");
        assert_eq!(String::from_utf8(body.to_json()).expect("UTF-8"), text);
        assert_eq!(serde_json::from_str::<SettingsBody>(text).expect("settings"), body);
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let before =
            SettingsBody::parse(br#"{"max_in_flight":3,"rate":"5/s","burst":9,"default_lease":"5m"}"#);
        let after = before.expect("settings").patched(br#"{"max_in_flight":null,"max_backlog":7}"#);
        let after = after.expect("settings");
        assert_eq!((after.max_in_flight, after.max_backlog, after.burst), (None, Some(7), Some(9)));
        let faster = after.patched(br#"{"rate":"6/s"}"#).expect("settings");
        assert_eq!((faster.rate.map(|rate| rate.tasks), faster.burst), (Some(6), None));
        let without = faster.patched(br#"{"rate":null}"#).expect("settings");
        assert_eq!((without.rate, without.default_lease_ms), (None, Some(300_000)));
    }

    #[test]
    fn of_a_policy_and_of_the_history_a_patch_changes_what_it_names() {
        let patched =
            |before: &SettingsBody, text: &str| before.clone().patched(text.as_bytes()).expect(text);
        let five = patched(&SettingsBody::default(), r#"{"retry":{"max_attempts":5},"history":{"keys":7}}"#);
        let usual = RetryBody::default();
        assert_eq!(five.retry, Some(RetryBody { max_attempts: Some(5), ..usual }));
        let fixed = patched(&five, r#"{"retry":{"backoff":"fixed","base":"20m"},"history":{"keep":"1h"}}"#);
        let [base_ms, longer_ms] = [1_200_000, 2_400_000];
        let wanted = RetryBody {
            max_attempts: Some(5),
            exponential: false,
            base_ms,
            max_ms: base_ms,
            jitter_percent: 0,
        };
        assert_eq!(fixed.retry, Some(wanted));
        assert_eq!(fixed.history, Some(HistoryBody { keep_ms: 3_600_000, keys: 7 }));
        let longer = patched(&fixed, r#"{"retry":{"base":"40m"}}"#).retry.expect("a policy");
        assert_eq!((longer.base_ms, longer.max_ms), (longer_ms, longer_ms), "nobody named the longest");
        let back = patched(&fixed, r#"{"retry":{"base":null,"backoff":null,"max_attempts":null}}"#);
        assert_eq!(back.retry, Some(usual));
        assert_eq!(patched(&back, r#"{"retry":null}"#).retry, None);
        let again = patched(&five, r#"{"retry":{"backoff":"exponential","max_attempts":null}}"#);
        assert_eq!(again.retry, Some(usual), "somebody wants the usual one");
        let by_chance = patched(&fixed, r#"{"retry":{"jitter":0.2}}"#);
        let same = patched(&by_chance, r#"{"retry":{"backoff":"fixed"}}"#);
        assert_eq!(same.retry.map(|retry| retry.jitter_percent), Some(20), "the kind is as it was");
        let other = patched(&by_chance, r#"{"retry":{"backoff":"exponential"}}"#);
        assert_eq!(other.retry.map(|retry| (retry.jitter_percent, retry.max_ms)), Some((50, base_ms)));
        let refused = fixed.patched(br#"{"retry":{"max":"1s"}}"#).expect_err("too short").to_string();
        assert!(refused.contains("`retry.max`: 1s is shorter"), "{refused}");
    }

    #[test]
    fn what_is_absent_or_null_has_its_default() {
        for text in ["", "{}", r#"{"max_in_flight":null,"rate":null,"retry":null}"#] {
            assert_eq!(SettingsBody::parse(text.as_bytes()), Ok(SettingsBody::default()));
        }
        let partly = SettingsBody::parse(br#"{"history":{"keys":5}}"#).expect("settings");
        assert_eq!(partly.history, Some(HistoryBody { keep_ms: 86_400_000, keys: 5 }));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, what) in [
            (r#"{"max_in_flight":0}"#, "`max_in_flight`: 0 is not from 1 to 1000000000"),
            (
                r#"{"max_in_flight":-1}"#,
                "`max_in_flight`: expected an integer from 1 to 1000000000, got the negative number -1",
            ),
            (r#"{"rate":5}"#, "`rate`: expected a string, got the number 5"),
            (r#"{"burst":5}"#, "`burst`: means nothing without a `rate`"),
            (r#"{"default_lease":"13h"}"#, "`default_lease`: 13h is not from 1s to 12h"),
            (r#"{"retry":{"max_attempts":0}}"#, "`retry.max_attempts`: 0 is not from 1 to 1000000"),
            (r#"{"history":{"keep":"2y"}}"#, "`history.keep`: `2y` has the unknown unit `y`"),
            (r#"{"history":5}"#, "`history`: expected an object, got the number 5"),
            (r#"{"webhook":{}}"#, "`webhook`: is not supported by this version"),
        ] {
            assert_eq!(refused(text).0, what);
        }
        assert_eq!(refused(r#"{"paused":true}"#).1, "use POST /v1/queues/{q}/pause and /resume");
    }

    #[test]
    fn a_pause_may_have_an_end() {
        for open in [&b""[..], b"{}", br#"{"for":null}"#] {
            assert_eq!(PauseBody::parse(open), Ok(PauseBody { for_ms: None }));
        }
        let some = PauseBody::parse(br#"{"for":"10m"}"#).expect("a pause");
        assert_eq!((some.for_ms, some.to_json()), (Some(600_000), br#"{"for":"10m"}"#.to_vec()));
        assert!(PauseBody::parse(br#"{"for":"0s"}"#).is_err());
        assert!(no_body(b"{}").is_ok() && no_body(br#"{"a":1}"#).is_err());
    }
}
