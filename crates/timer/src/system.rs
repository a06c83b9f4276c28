//! [`SystemClock`]: the monotonic clock of the operating system.

use std::time::Instant;

use crate::{Clock, Monotonic};

/// The operating system's monotonic clock, read through [`Instant`].
///
/// The origin is the moment at which the clock was made; clones share it. Setting the wall clock does not change this clock. On Linux it is
/// `CLOCK_MONOTONIC`, which stands still while the machine is suspended.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock that starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this module is where the monotonic clock is read")]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }

    /// The reading of this clock at an instant; zero if the instant is before the origin.
    #[must_use]
    pub fn at(&self, instant: Instant) -> Monotonic {
        Monotonic::ZERO.saturating_add(instant.saturating_duration_since(self.origin))
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this module is where the monotonic clock is read")]
    fn now(&self) -> Monotonic {
        self.at(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn k1_readings_never_fall_and_clones_share_the_origin() {
        let clock = SystemClock::new();
        let clone = clock;
        let mut last = Monotonic::ZERO;
        for _ in 0..1_000 {
            for reading in [clock.now(), clone.now()] {
                assert!(reading >= last, "{reading:?} is before {last:?}");
                last = reading;
            }
        }
        // If the clock has a coarse step, several readings are needed until it advances.
        while clock.now() == last {}
    }

    #[test]
    fn an_instant_has_one_reading() {
        let clock = SystemClock::new();
        let later = clock.origin + Duration::from_nanos(51_592_000);
        assert_eq!(clock.at(later), Monotonic::from_nanos(51_592_000));
        if let Some(before) = clock.origin.checked_sub(Duration::from_nanos(1)) {
            assert_eq!(clock.at(before), Monotonic::ZERO);
        }
    }
}
