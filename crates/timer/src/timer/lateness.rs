//! [`Lateness`]: a histogram of how late bodies began and futures were woken.
//!
//! Ground rule: the counters are relaxed and are read one by one. A reading during the work of other threads may miss the latest values.

use std::fmt;
use std::time::Duration;

use crate::sync::atomic::{AtomicU64, Ordering};

/// The number of buckets: one for each value below 4, then four for each power of two.
const BUCKETS: usize = 4 + 62 * 4;

/// Records latenesses.
pub(crate) struct Recorder {
    buckets: Box<[AtomicU64]>,
    longest: AtomicU64,
}

impl Recorder {
    pub(super) fn new() -> Self {
        Self { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), longest: AtomicU64::new(0) }
    }

    pub(super) fn record(&self, late: Duration) {
        let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Lateness {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        Lateness { counts, longest: Duration::from_nanos(self.longest.load(Ordering::Relaxed)) }
    }
}

/// The bucket of a value: its highest bit and the two bits below it.
fn bucket_of(nanos: u64) -> usize {
    match nanos.checked_ilog2() {
        Some(high) if high >= 2 => (high as usize - 1) * 4 + (nanos >> (high - 2) & 3) as usize,
        _ => nanos as usize,
    }
}

/// The highest value of a bucket.
fn end_of(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let (shift, below) = (bucket / 4 - 1, bucket as u128 % 4);
    u64::try_from(((below + 5) << shift) - 1).unwrap_or(u64::MAX)
}

/// How late bodies began and futures were woken after their deadlines: a [reading](crate::Metrics::lateness) of a histogram.
///
/// A value is accurate to a quarter of itself. Nothing is ever early, so there are no negative values.
///
/// ```
/// use std::time::Duration;
/// use tickwheel::{Job, ManualClock, Timer};
///
/// let clock = ManualClock::new();
/// let timer = Timer::builder().clock(clock.clone()).executor(Job::run).measure_lateness().build()?;
/// timer.schedule(Duration::from_millis(1), || ()).unwrap();
/// clock.advance(Duration::from_millis(3));
///
/// let lateness = timer.metrics().lateness.expect("it is measured");
/// assert_eq!((lateness.count(), lateness.max()), (1, Duration::from_millis(2)));
/// let median = lateness.quantile(0.5).expect("one value");
/// assert!(median >= Duration::from_millis(2) && median < Duration::from_micros(2_500));
/// # Ok::<(), tickwheel::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Lateness {
    counts: Vec<u64>,
    longest: Duration,
}

impl Lateness {
    /// The number of recorded bodies and futures.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The longest lateness, exactly; zero if nothing was counted.
    #[must_use]
    pub fn max(&self) -> Duration {
        self.longest
    }

    /// The lateness that this share of all recorded values did not exceed, rounded up to the end of its bucket, but not above
    /// [`max`](Self::max). `None` if nothing was recorded. A share below 0 counts as 0, a share above 1 as 1.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        let rank = ((count as f64 * share.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, in_bucket) in self.counts.iter().enumerate() {
            seen += in_bucket;
            if seen >= rank {
                return Some(Duration::from_nanos(end_of(bucket)).min(self.longest));
            }
        }
        None
    }

    /// The buckets in ascending order: the highest value of a bucket, and the number of values in it. Empty buckets
    /// are left out.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(bucket, count)| (Duration::from_nanos(end_of(bucket)), *count))
    }
}

impl fmt::Debug for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lateness")
            .field("count", &self.count())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.longest)
            .finish()
    }
}

#[cfg(all(test, not(tickwheel_shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_bucket_and_within_a_quarter_of_its_end() {
        let mut values: Vec<u64> = (0..2_000).collect();
        values.extend((0..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + 1, power + power / 2, power.saturating_mul(2) - 1]
        }));
        values.push(u64::MAX);
        for value in values {
            let bucket = bucket_of(value);
            let end = end_of(bucket);
            assert!(value <= end, "{value} is beyond the end of its bucket, {end}");
            assert!(end - value <= value / 4, "{value} is too far from the end of its bucket, {end}");
            assert!(bucket == 0 || end_of(bucket - 1) < value, "{value} belongs into an earlier bucket");
        }
    }

    #[test]
    fn quantiles_are_of_all_values_and_never_beyond_the_longest() {
        let recorder = Recorder::new();
        assert_eq!(recorder.read().quantile(0.5), None);
        for micros in 1..=100 {
            recorder.record(Duration::from_micros(micros));
        }
        let lateness = recorder.read();
        assert_eq!((lateness.count(), lateness.max()), (100, Duration::from_micros(100)));
        assert_eq!(lateness.quantile(1.0), Some(Duration::from_micros(100)));
        for (share, exact) in [(0.0, 1_000), (0.5, 50_000), (0.99, 99_000)] {
            let found = lateness.quantile(share).expect("a value").as_nanos() as u64;
            assert!(found >= exact && found <= exact * 5 / 4, "{share}: {found} for {exact}");
        }
        assert_eq!(lateness.buckets().map(|(_, count)| count).sum::<u64>(), 100);
    }
}
