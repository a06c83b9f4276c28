//! The answer table: what becomes of a task after each answer, and after each way to get none.

use std::time::{Duration, SystemTime};

use tickwheel_queue::Undeliverable;

use crate::outcome::Outcome;
use crate::text::in_one_line;

/// The longest time for which a target may ask for silence: 24 h.
const SILENCE_MAX: Duration = Duration::from_secs(24 * 3_600);
/// This much of a body stands in the reason of a failure (bytes).
const REASON_BYTES: usize = 200;

/// Statuses that have a meaning of their own for a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AnswerRules {
    /// After one of these statuses the task is dead at once. Default: none, because a receiver that is deployed badly answers 404 to all.
    pub dead_on: Vec<u16>,
    /// After one of these statuses the target is disabled. Default: 410.
    pub disable_on: Vec<u16>,
}

impl Default for AnswerRules {
    fn default() -> Self {
        Self { dead_on: Vec::new(), disable_on: vec![410] }
    }
}

/// The answer of a receiver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The header `retry-after`, as a time from now (ms).
    pub retry_after_ms: Option<u64>,
    /// Whether the header `webhook-delivery` is `abort-message`: the receiver never wants this message again.
    pub aborts: bool,
    /// The first bytes of the body.
    pub body: Vec<u8>,
}

/// How a connection or a request failed before there was an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// There was no connection: the look-up, the connection or the handshake failed, or took too long.
    NoConnection(String),
    /// The address may not be called.
    Blocked(String),
    /// The connection ended before the whole request was sent.
    Unsent(String),
    /// The connection ended after the request was sent, without an answer.
    NoAnswer(String),
    /// The connection ended after the request was sent, and so does a connection on which nothing is sent. So the target is down.
    Down(String),
    /// The time was over after the request was sent.
    TimedOut(Duration),
}

impl AnswerRules {
    /// Returns what an answer means for the task and for the target.
    #[must_use]
    pub fn judge(&self, answer: &Answer) -> Outcome {
        let Answer { status, retry_after_ms, aborts, ref body } = *answer;
        let reason = reason(status, None, body);
        let silence_ms = retry_after_ms.map(|ms| ms.min(SILENCE_MAX.as_millis() as u64));
        match status {
            _ if aborts || self.dead_on.contains(&status) => {
                Outcome::undeliverable(Undeliverable::Refused, reason)
            }
            200..=299 => Outcome::Delivered,
            _ if self.disable_on.contains(&status) => Outcome::Disabled { reason: reason.into() },
            429 | 503 => Outcome::TargetFailed {
                reason: self::reason(status, silence_ms, body).into(),
                open_ms: silence_ms,
                asked: silence_ms.is_some(),
            },
            502 | 504 => Outcome::target_failed(reason),
            _ => Outcome::TaskFailed { reason: reason.into(), retry_after_ms: silence_ms },
        }
    }
}

impl Failure {
    /// Returns what this failure means for the task and for the target.
    #[must_use]
    pub fn judge(&self) -> Outcome {
        match self {
            Self::NoConnection(text) | Self::Unsent(text) | Self::Down(text) => {
                Outcome::target_failed(text.as_str())
            }
            Self::NoAnswer(text) => Outcome::task_failed(text.as_str()),
            Self::TimedOut(after) => Outcome::task_failed(format!(
                "no answer within {}",
                tickwheel_api::duration::format(after.as_millis() as u64)
            )),
            Self::Blocked(text) => Outcome::Blocked { reason: text.as_str().into() },
        }
    }
}

/// Returns the status, the time for which the target wants silence (ms), and the beginning of the body in one line of text.
fn reason(status: u16, silence_ms: Option<u64>, body: &[u8]) -> String {
    // A date of the header ends between two seconds of ours.
    let silence = silence_ms.map(|ms| tickwheel_api::duration::format(ms.div_ceil(1_000) * 1_000));
    let silence = silence.map(|silence| format!(", retry after {silence}")).unwrap_or_default();
    let text = String::from_utf8_lossy(&body[..body.len().min(REASON_BYTES)]);
    // A character that was cut at the end is no mistake of the receiver.
    let text = text.trim_end_matches('\u{fffd}');
    match in_one_line(text).trim() {
        "" => format!("http {status}{silence}"),
        line => format!("http {status}{silence}: {line}"),
    }
}

/// Reads the header `retry-after`: seconds, or a date of RFC 9110. Returns the time from `now_ms` on (ms since 1970), rounded up; `None`: the
/// header is malformed. A date that has passed is 0.
pub(crate) fn retry_after(value: &str, now_ms: i64) -> Option<u64> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(value.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1_000));
    }
    let at =
        httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let at_ms = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    Some(u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16) -> Answer {
        Answer { status, retry_after_ms: None, aborts: false, body: b"no\nluck".to_vec() }
    }

    /// One row of the table for each status.
    #[test]
    fn every_status_has_its_outcome() {
        let rules = AnswerRules { dead_on: vec![422], ..AnswerRules::default() };
        for status in 100..=599 {
            let outcome = rules.judge(&answer(status));
            let wanted = match status {
                200..=299 => "acked",
                410 | 429 | 502..=504 => "given_back",
                422 => "dead",
                _ => "failed",
            };
            assert_eq!(outcome.name(), wanted, "{status}");
        }
        assert!(matches!(rules.judge(&answer(410)), Outcome::Disabled { .. }));
        let Outcome::TaskFailed { reason, .. } = rules.judge(&answer(500)) else { panic!("a failure") };
        assert_eq!(&*reason, "http 500: no luck");
    }

    #[test]
    fn a_receiver_may_abort_a_message_with_any_status() {
        for status in [200, 404, 503] {
            let outcome = AnswerRules::default().judge(&Answer { aborts: true, ..answer(status) });
            assert!(
                matches!(outcome, Outcome::Undeliverable { why: Undeliverable::Refused, .. }),
                "{status}"
            );
        }
    }

    #[test]
    fn a_wish_to_wait_is_for_the_target_or_for_the_task_and_has_a_limit() {
        let judge =
            |status, ms| AnswerRules::default().judge(&Answer { retry_after_ms: Some(ms), ..answer(status) });
        let Outcome::TargetFailed { open_ms, asked, reason } = judge(503, 4_001) else {
            panic!("the target failed")
        };
        assert_eq!((open_ms, asked, &*reason), (Some(4_001), true, "http 503, retry after 5s: no luck"));
        let Outcome::TargetFailed { open_ms, .. } = judge(429, u64::MAX) else { panic!("the target failed") };
        assert_eq!(open_ms, Some(86_400_000));
        let Outcome::TaskFailed { retry_after_ms, .. } = judge(500, 7_000) else { panic!("the task failed") };
        assert_eq!(retry_after_ms, Some(7_000));
        let Outcome::TargetFailed { open_ms, asked, .. } = judge(502, 5_000) else {
            panic!("the target failed")
        };
        assert_eq!((open_ms, asked), (None, false), "a gateway does not speak for the target");
        let Outcome::TargetFailed { asked, reason, .. } = AnswerRules::default().judge(&answer(503)) else {
            panic!("the target failed")
        };
        assert_eq!((asked, &*reason), (false, "http 503: no luck"));
    }

    #[test]
    fn a_reason_is_one_short_line() {
        let body = |bytes: &[u8]| reason(500, None, bytes);
        assert_eq!(body(b""), "http 500");
        assert_eq!(body(b" \r\n "), "http 500");
        assert_eq!(body(b"a\x1b[31mb\0c"), "http 500: a [31mb c");
        let long = "ä".repeat(150);
        assert_eq!(body(long.as_bytes()), format!("http 500: {}", "ä".repeat(100)));
        let cut = format!("x{long}");
        assert_eq!(body(cut.as_bytes()), format!("http 500: x{}", "ä".repeat(99)));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = 784_111_777_000;
        assert_eq!(retry_after("120", now), Some(120_000));
        assert_eq!(retry_after(" 0 ", now), Some(0));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(0));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:37 GMT", now - 1), Some(60_001));
        assert_eq!(retry_after("Thu, 01 Jan 1970 00:00:00 GMT", now), Some(0));
        assert_eq!(retry_after("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800_000 - 5), Some(5));
        for bad in [
            "",
            "soon",
            "-1",
            "1.5",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 25:49:37 GMT",
            "99999-01-01",
        ] {
            assert_eq!(retry_after(bad, now), None, "{bad}");
        }
        assert_eq!(retry_after("99999999999999999999999", now), Some(u64::MAX));
    }
}
