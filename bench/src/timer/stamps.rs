//! [`Stamps`]: when what fired; and [`Bell`], a waker that says so.
//!
//! Ground rules: each place of `fired` is written by the one body that has its index; everything is relaxed, for whoever
//! reads the times has seen first, by [`Stamps::fired`], that all of them are there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Wake;
use std::time::{Duration, Instant};

use tickwheel::{Clock, Monotonic, SystemClock};

/// The clock of a sample, and the same clock as those see it who want an `Instant`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    pub(crate) clock: SystemClock,
    origin: Instant,
}

impl Epoch {
    pub(crate) fn new() -> Self {
        let clock = SystemClock::new();
        let now = Instant::now();
        let origin = now - Duration::from_nanos(clock.at(now).as_nanos());
        Self { clock, origin }
    }

    /// The instant of a reading.
    pub(crate) fn instant(&self, reading: Monotonic) -> Instant {
        self.origin + Duration::from_nanos(reading.as_nanos())
    }

    /// Sleeps until a reading, if it is still to come.
    pub(crate) fn sleep_until(&self, reading: Monotonic) {
        std::thread::sleep(reading.saturating_since(self.clock.now()));
    }
}

/// The readings at which timers fired.
#[derive(Debug)]
pub(crate) struct Stamps {
    epoch: Epoch,
    /// Zero until then.
    fired: Box<[AtomicU64]>,
    twice: AtomicU64,
}

impl Stamps {
    pub(crate) fn new(epoch: Epoch, timers: usize) -> Self {
        let fired = (0..timers).map(|_| AtomicU64::new(0)).collect();
        Self { epoch, fired, twice: AtomicU64::new(0) }
    }

    /// What the readings are readings of.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// That of this index fires now.
    #[inline]
    pub(crate) fn stamp(&self, index: usize) {
        let now = self.epoch.clock.now().as_nanos();
        if self.fired[index].swap(now, Ordering::Relaxed) != 0 {
            self.twice.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether it did.
    pub(crate) fn has_fired(&self, index: usize) -> bool {
        self.fired[index].load(Ordering::Relaxed) != 0
    }

    /// How many fired.
    pub(crate) fn fired(&self) -> u64 {
        self.fired.iter().filter(|fired| fired.load(Ordering::Relaxed) != 0).count() as u64
    }

    /// How often one fired again.
    pub(crate) fn twice(&self) -> u64 {
        self.twice.load(Ordering::Relaxed)
    }

    /// The nanoseconds from what `due` says to the stamp, negative if it was early, of all that fired.
    pub(crate) fn lateness(&self, due: impl Fn(usize) -> Monotonic) -> Vec<i64> {
        let fired = self.fired.iter().map(|fired| fired.load(Ordering::Relaxed)).enumerate();
        fired
            .filter(|&(_, nanos)| nanos != 0)
            .map(|(index, nanos)| nanos.wrapping_sub(due(index).as_nanos()) as i64)
            .collect()
    }
}

/// Stamps when it is woken, which is all that a sleep without a task can do.
#[derive(Debug)]
pub(crate) struct Bell {
    stamps: Arc<Stamps>,
    index: usize,
}

impl Bell {
    pub(crate) fn new(stamps: &Arc<Stamps>, index: usize) -> Self {
        Self { stamps: Arc::clone(stamps), index }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.stamps.stamp(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_and_its_instant_are_the_same_moment() {
        let epoch = Epoch::new();
        let reading = Monotonic::from_nanos(1_234_567_890);
        assert_eq!(epoch.clock.at(epoch.instant(reading)), reading);
    }

    #[test]
    fn early_late_and_twice_are_told_apart() {
        let stamps = Stamps::new(Epoch::new(), 3);
        while stamps.epoch.clock.now().as_nanos() < 10 {}
        stamps.stamp(0);
        stamps.stamp(2);
        assert_eq!((stamps.fired(), stamps.twice()), (2, 0));
        let late = stamps.lateness(|index| Monotonic::from_nanos(if index == 0 { 1 } else { u64::MAX / 4 }));
        assert!(late.len() == 2 && late[0] > 0 && late[1] < 0, "{late:?}");
        stamps.stamp(2);
        assert_eq!((stamps.fired(), stamps.twice()), (2, 1));
    }
}
