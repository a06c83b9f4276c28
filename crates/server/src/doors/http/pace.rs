//! The pace at which a client sends the lines of a body.

use std::time::Duration;

use tokio::time::Instant;

/// The number of bytes that a batch must send in each [`PACE_TIME`] while the server waits for it: 1 KiB a second.
pub(crate) const PACE_BYTES: usize = 5 << 10;
/// The time over which the pace is measured; a client with a short pause is not slow.
pub(crate) const PACE_TIME: Duration = Duration::from_secs(5);

/// Measures how much a batch sends while the server waits for it.
#[derive(Debug)]
pub(crate) struct Pace {
    since: Instant,
    bytes: usize,
}

impl Pace {
    /// Begins to measure. The server has read `bytes` of the body so far.
    pub(crate) fn from(bytes: usize) -> Self {
        Self { since: Instant::now(), bytes }
    }

    /// Leaves out a time in which the server did not wait for the client.
    pub(crate) fn put_off(&mut self, by: Duration) {
        self.since += by;
    }

    /// When the next measurement ends.
    pub(crate) fn ends(&self) -> Instant {
        self.since + PACE_TIME
    }

    /// Whether the body came too slowly. The server has read `bytes` of it so far. Begins the next measurement.
    pub(crate) fn is_slow(&mut self, bytes: usize) -> bool {
        let slow = bytes.saturating_sub(self.bytes) < PACE_BYTES;
        *self = Self::from(bytes);
        slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pace_is_measured_over_five_seconds() {
        let mut pace = Pace::from(100);
        assert_eq!(pace.ends(), Instant::now() + PACE_TIME);
        assert!(!pace.is_slow(100 + PACE_BYTES));
        assert!(pace.is_slow(100 + PACE_BYTES + PACE_BYTES - 1));
        pace.put_off(Duration::from_secs(3));
        assert_eq!(pace.ends(), Instant::now() + PACE_TIME + Duration::from_secs(3));
    }
}
