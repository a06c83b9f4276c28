//! When a call is sent again.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use crate::ClientError;
use crate::call::Repeat;
use tickwheel_api::ProblemKind;

/// The number of times that a call is sent in all, and the waits in between.
///
/// A call that had no effect is sent again. Examples: no connection could be made for a reason that may pass; the server is starting,
/// stopping or busy; a queue's backlog is full. A call that may have had an effect ([`Outcome::Unknown`](crate::Outcome)) is sent again
/// only if sending it twice has the same effect as once: see [what is repeated](crate#what-is-repeated).
///
/// A wait is `base`, doubled with each failure up to `max`. A random part of up to half of it is taken off, so that many clients do not
/// repeat their calls at the same time. A wait is never shorter than the server's `Retry-After`. If that is more than a minute, the call is
/// not repeated.
///
/// ```
/// use std::time::Duration;
/// use tickwheel_client::{Client, Retries};
/// let retries = Retries { calls: 10, ..Retries::default() };
/// assert_eq!(retries.base, Duration::from_millis(100));
/// let client = Client::new("http://127.0.0.1:8463")?.with_retries(retries);
/// # Ok::<(), tickwheel_client::ClientError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// The largest number of times that a call is sent. With 1 it is not repeated. Default: 5.
    pub calls: u32,
    /// The first wait. Default: 100 ms.
    pub base: Duration,
    /// The longest wait. Default: 5 s.
    pub max: Duration,
}

/// The longest `Retry-After` (s). If a server asks for more, the call is not repeated.
const RETRY_AFTER_S_MAX: u32 = 60;

impl Default for Retries {
    fn default() -> Self {
        Self { calls: 5, base: Duration::from_millis(100), max: Duration::from_secs(5) }
    }
}

impl Retries {
    /// Every call is sent once.
    pub const NONE: Self = Self { calls: 1, base: Duration::ZERO, max: Duration::ZERO };

    /// The wait after the nth failure of a call, counted from 1. `None`: the call is not sent again.
    pub(crate) fn wait(&self, nth: u32, error: &ClientError, repeat: Repeat) -> Option<Duration> {
        let safe = repeat == Repeat::Safe;
        let again = match error {
            ClientError::Unreachable { .. } => true,
            ClientError::NoSocket { lasting, .. } => !lasting,
            ClientError::NoAnswer { .. } => safe,
            ClientError::Problem(problem) => match problem.kind()? {
                ProblemKind::Busy
                | ProblemKind::BacklogFull
                | ProblemKind::Starting
                | ProblemKind::NoDescriptors
                | ProblemKind::Stopping => true,
                ProblemKind::Indeterminate => safe,
                _ => false,
            },
            _ => false,
        };
        if !again || nth >= self.calls {
            return None;
        }
        let asked = error.problem().and_then(|problem| problem.retry_after_s).unwrap_or_default();
        if asked > RETRY_AFTER_S_MAX {
            return None;
        }
        let doubled = self.base.saturating_mul(1_u32.checked_shl(nth - 1).unwrap_or(u32::MAX)).min(self.max);
        Some(doubled.mul_f64(1.0 - chance() / 2.0).max(Duration::from_secs(asked.into())))
    }
}

/// A number from 0 to 1, a different one each time. The keys of hash maps are random enough to spread some waits.
fn chance() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use tickwheel_api::Problem;

    #[test]
    fn waits_double_up_to_the_longest_and_no_less_than_the_server_asks_for() {
        let retries = Retries { calls: 9, base: Duration::from_millis(100), max: Duration::from_secs(1) };
        let lost = ClientError::NoAnswer { address: String::new(), source: "lost".into(), repeatable: true };
        for (nth, longest_ms) in [(1, 100), (2, 200), (4, 800), (5, 1_000), (8, 1_000)] {
            let longest = Duration::from_millis(longest_ms);
            let wait = retries.wait(nth, &lost, Repeat::Safe).expect("it is sent again");
            assert!((longest / 2..=longest).contains(&wait), "{nth}: {wait:?}");
        }
        assert_eq!(retries.wait(9, &lost, Repeat::Safe), None, "nine calls were sent");
        let busy = ClientError::Problem(Box::new(Problem::busy("too much", 7)));
        assert_eq!(retries.wait(1, &busy, Repeat::Unsent), Some(Duration::from_secs(7)));
        let for_long = ClientError::Problem(Box::new(Problem::busy("too much", 61)));
        assert_eq!(retries.wait(1, &for_long, Repeat::Safe), None, "the wait would be too long");
        assert_eq!(Retries::NONE.wait(1, &busy, Repeat::Safe), None);
    }

    #[test]
    fn what_may_have_had_an_effect_is_sent_again_only_if_that_is_safe() {
        let retries = Retries::default();
        let problem = |problem| ClientError::Problem(Box::new(problem));
        let lost =
            || ClientError::NoAnswer { address: String::new(), source: "lost".into(), repeatable: true };
        let unreachable = || ClientError::Unreachable { address: String::new(), source: "refused".into() };
        let no_socket = |lasting| {
            let [address, why, hint] = [const { String::new() }; 3];
            ClientError::NoSocket { address, why, hint, lasting }
        };
        for (error, always, if_safe) in [
            (unreachable(), true, true),
            (no_socket(false), true, true),
            (no_socket(true), false, false),
            (problem(Problem::starting()), true, true),
            (problem(Problem::stopping()), true, true),
            (problem(Problem::backlog_full("q", 1)), true, true),
            (lost(), false, true),
            (problem(Problem::indeterminate("it stopped")), false, true),
            (problem(Problem::not_found("q", "k")), false, false),
            (problem(Problem::read_only("the disk is gone")), false, false),
            (problem(Problem::internal("a mistake")), false, false),
            (ClientError::BadAnswer { status: None, what: String::new() }, false, false),
        ] {
            let again =
                [Repeat::Unsent, Repeat::Safe].map(|repeat| retries.wait(1, &error, repeat).is_some());
            assert_eq!(again, [always, if_safe], "{error}");
        }
    }
}
