//! The settings of a queue.

use crate::declare::json::{self, Known};
use crate::declare::{Body, MEMBERS_MAX, ValueCodec, body, duration, nullable, number, object, or};
use crate::text::bad_request::BadRequest;
use crate::values::limits::{LEASE_MS_MAX, LEASE_MS_MIN, LIMIT_MAX};
use crate::values::rate::{RATE_TASKS_MAX, Rate, RateBody};
use crate::values::retry::RetryBody;

/// Maximum time for which ended tasks are remembered: one year.
pub const HISTORY_KEEP_MS_MAX: u64 = 365 * 86_400_000;
/// Maximum number of ended tasks that a queue remembers. Each takes about 200 bytes of memory.
pub const HISTORY_KEYS_MAX: u64 = 1_000_000;
/// Maximum length of a pause that ends by itself: one year.
pub const PAUSE_MS_MAX: u64 = 365 * 86_400_000;

body! {
    /// The settings of a queue. A member that is `null` has its default.
    ///
    /// The body of `PUT /v1/queues/{q}`: `{"max_in_flight": 3, "rate": "5/s", "default_lease": "5m"}`. The body replaces all settings: a member that
    /// is absent or `null` has its default.
    #[derive(Default)]
    pub struct SettingsBody: both "Settings" {
        /// Maximum number of tasks that are leased at one time. Default: no limit.
        max_in_flight: Option<u64> = nullable(number(1, LIMIT_MAX));
        /// Maximum number of tasks of one `group` that are leased at one time. Default: no limit.
        max_in_flight_per_group: Option<u64> = nullable(number(1, LIMIT_MAX));
        /// Maximum rate of deliveries: `5/s`, `100/m`, `1/250ms`; the period is at most one day. Default: no limit.
        rate: Option<RateBody> = nullable(Rate);
        /// Maximum number of deliveries at once after a time without any. Default: the number in `rate`. If a `PATCH` changes `rate`, a `burst` of 1, or one that is not the number in the old rate, stays.
        burst: Option<u64> = nullable(number(1, RATE_TASKS_MAX));
        /// Maximum number of live tasks; a put that would add another one is refused with 429. Default: no limit.
        max_backlog: Option<u64> = nullable(number(1, LIMIT_MAX));
        /// Length of a lease if the worker does not name one, 1 s to 12 h. Default: 30 s.
        default_lease_ms as "default_lease": Option<u64> = nullable(duration().within(LEASE_MS_MIN, LEASE_MS_MAX));
        /// The retry policy of tasks that have none of their own. Default: failed tasks are ready again at once, without limit. A `PATCH` changes single members of it: `max` follows `base` and `jitter` follows `backoff` unless they are named, and `null` in place of the policy removes it.
        retry: Option<RetryBody> = nullable(object());
        /// The history: for how long a call about an ended task is answered `done` and not `not_found`.
        ///
        /// The histories of all queues together have at most 250,000 keys, those of the tasks that ended last.
        history: Option<HistoryBody> = nullable(object());
    }
    elsewhere: &[
        ("webhook", "use PUT /v1/queues/{q}/target"),
        ("target", "use PUT /v1/queues/{q}/target"),
        ("paused", "use POST /v1/queues/{q}/pause and /resume"),
        ("draining", "use POST /v1/queues/{q}/drain and /resume"),
        ("concurrency", "write `max_in_flight`"),
        ("lease", "write `default_lease`"),
        ("max_attempts", "it stands in `retry`: `{\"max_attempts\": 5}`"),
        ("queue", "it stands in the path: PUT /v1/queues/{q}"),
    ];
    check: |settings: &Self, _| settings.check_burst();
}

impl SettingsBody {
    /// These settings after a patch: a named member replaces its value, `null` restores its default, and other members stay. A `burst` that is the
    /// default of its rate follows a new `rate`, and no `burst` stays without a rate. The members of `retry` and `history` are patched one by one,
    /// too.
    ///
    /// # Errors
    ///
    /// The errors of [`parse`](Self::parse).
    pub fn patched(self, bytes: &[u8]) -> Result<Self, BadRequest> {
        let mut slots = [None; MEMBERS_MAX];
        json::read_members(bytes, &Self::KNOWN, &mut slots)?;
        let new_rate = Self::find("rate").and_then(|at| slots[at]);
        // A burst of 1 was given, because it is what a hard limit needs.
        let is_default = |burst| burst > 1 && self.rate.is_some_and(|rate| rate.tasks == burst);
        let stays = |burst: &u64| new_rate.is_none_or(|rate| rate.get() != "null" && !is_default(*burst));
        Self { burst: self.burst.filter(stays), ..self }.patch(&slots)
    }

    fn check_burst(&self) -> Result<(), BadRequest> {
        if self.burst.is_none() || self.rate.is_some() {
            return Ok(());
        }
        let hint = "add the rate, for example `\"rate\": \"5/s\"`";
        Err(BadRequest::member("burst", "means nothing without a `rate`", hint))
    }
}

const KEEP_MS_DEFAULT: u64 = 86_400_000;
const KEYS_DEFAULT: u64 = 100_000;

body! {
    /// The limits of the history of ended tasks. The limit that is reached first applies.
    #[derive(Copy)]
    pub struct HistoryBody: inner "History" {
        /// Time for which an ended task is remembered, at most 365 days. Default: 24 h.
        keep_ms as "keep": u64 = or(KEEP_MS_DEFAULT, duration().within(0, HISTORY_KEEP_MS_MAX).null_is(KEEP_MS_DEFAULT));
        /// Number of ended tasks that are remembered, the last ones. Default: 100,000.
        keys: u64 = or(KEYS_DEFAULT, number(0, HISTORY_KEYS_MAX).null_is(KEYS_DEFAULT));
    }
    example: r#"{"keep": "24h", "keys": 100000}"#;
}

body! {
    /// The length of a pause, during which nothing is leased.
    ///
    /// The body of `POST /v1/queues/{q}/pause`: empty, or `{"for": "10m"}`.
    #[derive(Copy, Default)]
    pub struct PauseBody: request "Pause" {
        /// Length of the pause, up to 365 days. Default: until the queue is resumed.
        for_ms as "for": Option<u64> = nullable(duration().within(1, PAUSE_MS_MAX));
    }
    later: &["until"];
    elsewhere: &[("delay", "write `for`"), ("wait", "write `for`")];
}

/// Refuses a body with members, for requests whose path says everything.
///
/// # Errors
///
/// Text that is not a JSON object, or an object with members.
pub fn no_body(bytes: &[u8]) -> Result<(), BadRequest> {
    const NONE: Known = Known { find: |_| None, names: Vec::new, later: &[], elsewhere: &[] };
    json::read_members(bytes, &NONE, &mut [])
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

    /// A client is often older than its server.
    #[test]
    fn an_answer_is_read_whatever_limits_its_server_has() {
        let text = r#"{"max_in_flight":5000000000,"webhook":{"url":"x"},"default_lease":"40h","history":{"keep":"1000d","keys":1,"days":3},"burst":7}"#;
        assert!(SettingsBody::parse(text.as_bytes()).is_err());
        let body: SettingsBody = serde_json::from_str(text).expect("settings of a later release");
        assert_eq!((body.max_in_flight, body.default_lease_ms), (Some(5_000_000_000), Some(144_000_000)));
        assert_eq!((body.history.expect("a history").keys, body.burst), (1, Some(7)));
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let before =
            SettingsBody::parse(br#"{"max_in_flight":3,"rate":"5/s","burst":9,"default_lease":"5m"}"#);
        let after = before.expect("settings").patched(br#"{"max_in_flight":null,"max_backlog":7}"#);
        let after = after.expect("settings");
        assert_eq!((after.max_in_flight, after.max_backlog, after.burst), (None, Some(7), Some(9)));
        let faster = after.patched(br#"{"rate":"6/s"}"#).expect("settings");
        assert_eq!((faster.rate.map(|rate| rate.tasks), faster.burst), (Some(6), Some(9)), "it was given");
        let usual =
            faster.clone().patched(br#"{"burst":6}"#).and_then(|usual| usual.patched(br#"{"rate":"7/s"}"#));
        assert_eq!(usual.expect("settings").burst, None, "the default follows the rate");
        let one = SettingsBody::parse(br#"{"rate":"1/s","burst":1}"#).expect("settings");
        assert_eq!(one.patched(br#"{"rate":"40/s"}"#).expect("settings").burst, Some(1), "of a hard limit");
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
            (r#"{"webhook":{}}"#, "`webhook`: is not a member of this request"),
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
