//! [`Retry`]: when a shard is taken again after a failure of its database.

use std::time::{Duration, Instant};

/// The first pause.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause. A failed engine still serves reads, so the next try may wait.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// A failure that comes this long after the last try has another cause.
const WELL: Duration = Duration::from_secs(60);

/// Pauses that double from failure to failure.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    /// When the failure of the present engine was seen.
    failed: Option<Instant>,
    /// When the last try was, and the pause before it.
    last: Option<(Instant, Duration)>,
}

impl Retry {
    /// Notes that the engine has failed. Returns whether the pause after the failure is over, and the shard is to be taken again.
    pub(crate) fn is_over(&mut self, now: Instant) -> bool {
        let failed = *self.failed.get_or_insert(now);
        let pause = match self.last {
            Some((tried, pause)) if failed < tried + WELL => (pause * 2).min(PAUSE_MAX),
            _ => PAUSE,
        };
        let is_over = now >= failed + pause;
        if is_over {
            (self.failed, self.last) = (None, Some((now, pause)));
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails at once after each try. Returns the pauses (ms).
    fn pauses(retry: &mut Retry, from: Instant, count: usize) -> (Vec<u128>, Instant) {
        let mut now = from;
        let mut pauses = Vec::new();
        for _ in 0..count {
            let failed = now;
            while !retry.is_over(now) {
                now += Duration::from_millis(100);
            }
            pauses.push((now - failed).as_millis());
        }
        (pauses, now)
    }

    #[test]
    fn the_pauses_double_until_the_shard_was_well_for_a_minute() {
        let mut retry = Retry::default();
        let begun = Instant::now();
        let (first, now) = pauses(&mut retry, begun, 8);
        assert_eq!(first, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        let (soon, now) = pauses(&mut retry, now + Duration::from_secs(59), 1);
        assert_eq!(soon, [30_000]);
        let (later, _) = pauses(&mut retry, now + WELL, 2);
        assert_eq!(later, [500, 1_000]);
    }
}
