//! [`ManualClock`]: a clock that moves when it is told to.
//!
//! Ground rules: `nanos` is the only shared field and is only ever raised. `advance` releases and
//! `now` acquires, so whoever sees a new time also sees what was done before time moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{Clock, Monotonic};

/// A clock for tests and simulations. It stands still until [`advance`](Self::advance) moves it, by
/// exactly what was asked for.
///
/// Clones are the same clock: give one to the code under test and keep one.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Clock, ManualClock, Monotonic};
///
/// let clock = ManualClock::new();
/// let shared = clock.clone();
/// clock.advance(Duration::from_millis(3));
/// assert_eq!(shared.now(), Monotonic::from_nanos(3_000_000));
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock at its origin.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock that already shows `start`.
    #[must_use]
    pub fn starting_at(start: Monotonic) -> Self {
        Self { nanos: Arc::new(AtomicU64::new(start.as_nanos())) }
    }

    /// Moves the clock and returns the new reading. It stays at [`Monotonic::MAX`] once it is
    /// there.
    pub fn advance(&self, duration: Duration) -> Monotonic {
        let later = |nanos| Monotonic::from_nanos(nanos).saturating_add(duration);
        let moved = self
            .nanos
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |nanos| Some(later(nanos).as_nanos()));
        match moved {
            Ok(before) | Err(before) => later(before),
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Monotonic {
        Monotonic::from_nanos(self.nanos.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_by_exactly_what_was_asked() {
        let clock = ManualClock::new();
        assert_eq!(clock.now(), Monotonic::ZERO);
        let steps = [51_592_000, 1_000, 0, 1, 60_000_000_000];
        let mut sum = 0;
        for nanos in steps {
            sum += nanos;
            let reading = clock.advance(Duration::from_nanos(nanos));
            assert_eq!(reading, Monotonic::from_nanos(sum));
            assert_eq!(clock.now(), reading);
        }
    }

    #[test]
    fn it_stops_at_the_end_of_time() {
        let clock = ManualClock::starting_at(Monotonic::from_nanos(u64::MAX - 1));
        assert_eq!(clock.advance(Duration::from_nanos(1)), Monotonic::MAX);
        assert_eq!(clock.advance(Duration::MAX), Monotonic::MAX);
        assert_eq!(clock.now(), Monotonic::MAX);
    }

    #[test]
    fn steps_from_many_threads_all_count() {
        let clock = ManualClock::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let before = clock.now();
                        let after = clock.advance(Duration::from_nanos(3));
                        assert!(after > before, "{after:?} is not after {before:?}");
                    }
                });
            }
        });
        assert_eq!(clock.now(), Monotonic::from_nanos(12_000));
    }

    #[test]
    fn a_clock_can_be_shared_as_a_trait_object() {
        let manual = ManualClock::new();
        let clock: Arc<dyn Clock> = Arc::new(manual.clone());
        manual.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), Monotonic::from_nanos(1_000_000_000));
        fn read(clock: impl Clock) -> Monotonic {
            clock.now()
        }
        assert_eq!(read(&*clock), read(clock));
    }
}
