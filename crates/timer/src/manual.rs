//! [`ManualClock`]: a clock that moves only when a caller moves it.
//!
//! Ground rules:
//! - `nanos` never decreases. `advance` releases and `now` acquires, so a thread that reads a new time also sees everything that was done
//!   before the clock moved.
//! - `followers` is protected by its lock, which is not held while a follower runs.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::{Clock, Follower, Monotonic, Motion};

/// A clock for tests and simulations. It stands still until [`advance`](Self::advance) moves it by exactly the given duration.
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
#[derive(Clone, Default)]
pub struct ManualClock {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    nanos: AtomicU64,
    followers: Mutex<Vec<Weak<dyn Follower>>>,
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
        let inner = Inner { nanos: AtomicU64::new(start.as_nanos()), followers: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Moves the clock and returns the new reading. A clock that has reached [`Monotonic::MAX`] stays there.
    ///
    /// When this call returns, everything that is due on this clock has been handed over: the bodies of a [`Timer`](crate::Timer) to its
    /// executor, and futures have been woken. The one exception is a task that another thread, which also moves the clock, is handing over
    /// at this time. The calling thread does all of this, one timer after the other: first bodies in the order of their deadlines, then
    /// wakers. Time moves in one step: a body that reads the clock sees the new reading, and the delay of a task that it schedules counts
    /// from there. If a body that runs on this thread schedules a task, this task waits for a later call, even with a delay of zero:
    /// between two ticks for the one that reaches the next tick, otherwise for the next one, which may be `advance(Duration::ZERO)`. If a body calls `advance`, this only moves the clock: the outer call then hands over what
    /// has come due.
    pub fn advance(&self, duration: Duration) -> Monotonic {
        let later = |nanos| Monotonic::from_nanos(nanos).saturating_add(duration);
        let moved = self
            .inner
            .nanos
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |nanos| Some(later(nanos).as_nanos()));
        let now = match moved {
            Ok(before) | Err(before) => later(before),
        };
        for follower in self.followers() {
            follower.moved();
        }
        now
    }

    /// Moves the clock by `duration` like [`advance`](Self::advance), but stops at each reading on the way at which a task is due. So a
    /// body reads the time of its own tick, and a task that it schedules runs in the same call if it comes due within `duration`: a flow of
    /// 15 days runs in one call. Inside a body this method is `advance`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::{Clock, Job, ManualClock, Timer};
    ///
    /// let clock = ManualClock::new();
    /// let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build()?;
    /// let (sender, seen) = std::sync::mpsc::channel();
    /// let inner = clock.clone();
    /// timer.fixed_delay(Duration::from_secs(10)).start(move || sender.send(inner.now().as_nanos() / 1_000_000_000).unwrap()).unwrap();
    /// clock.advance_through(Duration::from_secs(35));
    /// assert_eq!(seen.try_iter().collect::<Vec<_>>(), [10, 20, 30]);
    /// # Ok::<(), tickwheel::BuildError>(())
    /// ```
    pub fn advance_through(&self, duration: Duration) -> Monotonic {
        let end = self.now().saturating_add(duration);
        loop {
            let now = self.now();
            if now >= end {
                return self.advance(Duration::ZERO);
            }
            let next = self.followers().iter().filter_map(|follower| follower.next()).min();
            // A task that is due already runs one nanosecond later, so that time passes even if a body schedules itself without delay.
            let soonest = now.just_after();
            let stop = next.map_or(end, |next| next.clamp(soonest, end));
            self.advance(stop.saturating_since(now));
        }
    }

    /// The followers that still exist. The others are removed from the list.
    fn followers(&self) -> Vec<Arc<dyn Follower>> {
        let mut alive = Vec::new();
        lock(&self.inner.followers).retain(|follower| match follower.upgrade() {
            Some(follower) => {
                alive.push(follower);
                true
            }
            None => false,
        });
        alive
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Monotonic {
        Monotonic::from_nanos(self.inner.nanos.load(Ordering::Acquire))
    }

    fn follow(&self, follower: Weak<dyn Follower>) -> Motion {
        let mut followers = lock(&self.inner.followers);
        // Timers may be made and dropped while the clock stands still, so followers that no longer exist are removed here, too.
        if followers.len() == followers.capacity() {
            followers.retain(|follower| follower.strong_count() > 0);
        }
        followers.push(follower);
        Motion::ByHand
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualClock").field("now", &self.now()).finish_non_exhaustive()
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
    fn followers_that_are_gone_are_forgotten_though_it_never_moves() {
        struct Silent;
        impl Follower for Silent {
            fn moved(&self) {}
        }
        let clock = ManualClock::new();
        let stays: Arc<dyn Follower> = Arc::new(Silent);
        assert_eq!(clock.follow(Arc::downgrade(&stays)), Motion::ByHand);
        for _ in 0..1_000 {
            let goes: Arc<dyn Follower> = Arc::new(Silent);
            clock.follow(Arc::downgrade(&goes));
        }
        assert!(lock(&clock.inner.followers).len() < 10);
        assert_eq!(clock.followers().len(), 1);
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
