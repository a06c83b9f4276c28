//! [`Clock`]: the wall clock by which tasks are due.

use std::time::SystemTime;

/// The wall clock by which tasks are due: that of this machine, or an upper bound of the clock of a database.
///
/// The bound is never behind the database, so no delivery is taken for an early one because of the clocks. It may be ahead by the time of one
/// round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    ahead_us: i64,
}

impl Clock {
    /// The clock of this machine.
    pub(super) fn of_machine() -> Self {
        Self { ahead_us: 0 }
    }

    /// A clock that is ahead of that of this machine.
    pub(super) fn ahead_us(ahead_us: i64) -> Self {
        Self { ahead_us }
    }

    /// The time (ms since 1970), rounded down.
    pub(super) fn now_ms(self) -> i64 {
        own_us().saturating_add(self.ahead_us).div_euclid(1_000)
    }
}

/// The clock of this machine (µs since 1970).
pub(super) fn own_us() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_ahead_shows_more() {
        let (own, ahead) = (Clock::of_machine(), Clock::ahead_us(3_600_000_000));
        let before_ms = own.now_ms();
        assert!(ahead.now_ms() >= before_ms + 3_600_000);
        assert!(Clock::ahead_us(-3_600_000_000).now_ms() <= own.now_ms() - 3_600_000);
    }
}
