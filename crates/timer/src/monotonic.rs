//! [`Monotonic`]: a reading of a monotonic clock.

use std::fmt;
use std::num::NonZeroU64;
use std::time::Duration;

use tickwheel_core::ticks;

/// Nanoseconds since the origin of a [`Clock`](crate::Clock): 64 bits, which is 584 years.
///
/// Arithmetic has named methods that state what happens at the ends of the range; nothing wraps. A reading is not a date, and readings of
/// two clocks cannot be compared.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(u64);

impl Monotonic {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The last possible reading. A deadline of `MAX` is never due, even when the clock reads `MAX`.
    pub const MAX: Self = Self(u64::MAX);

    /// The reading `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The first nanosecond of a tick, at which to wake for a deadline in this tick; [`MAX`](Self::MAX) if the result does not fit.
    #[must_use]
    pub const fn from_tick(tick: u64, tick_nanos: NonZeroU64) -> Self {
        Self(ticks::nanos_of_tick(tick, tick_nanos))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The reading `duration` later; `None` if it is beyond [`MAX`](Self::MAX).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tickwheel::Monotonic;
    ///
    /// let start = Monotonic::from_nanos(5);
    /// assert_eq!(start.checked_add(Duration::from_micros(1)), Some(Monotonic::from_nanos(1_005)));
    /// assert_eq!(start.checked_add(Duration::MAX), None);
    /// ```
    #[must_use]
    #[inline]
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        // `Duration::as_nanos` is not used, because it computes with 128 bits.
        let nanos =
            duration.as_secs().checked_mul(1_000_000_000)?.checked_add(u64::from(duration.subsec_nanos()))?;
        self.0.checked_add(nanos).map(Self)
    }

    /// The reading `duration` later, or [`MAX`](Self::MAX).
    ///
    /// As a deadline, `MAX` means never.
    #[must_use]
    #[inline]
    pub fn saturating_add(self, duration: Duration) -> Self {
        self.checked_add(duration).unwrap_or(Self::MAX)
    }

    /// Whether this deadline is due at `now`. [`MAX`](Self::MAX) is never due.
    #[inline]
    pub(crate) const fn has_come(self, now: Self) -> bool {
        self.0 <= now.0 && self.0 != u64::MAX
    }

    /// The next possible reading.
    pub(crate) const fn just_after(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The time from `earlier` to this reading; `None` if `earlier` is later.
    #[must_use]
    pub fn checked_since(self, earlier: Self) -> Option<Duration> {
        self.0.checked_sub(earlier.0).map(Duration::from_nanos)
    }

    /// The time from `earlier` to this reading; zero if `earlier` is later.
    ///
    /// So `deadline.saturating_since(clock.now())` is how long to sleep.
    #[must_use]
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The tick that has been reached at this reading: rounded down, as the rule is for *now*.
    #[must_use]
    pub const fn floor_ticks(self, tick_nanos: NonZeroU64) -> u64 {
        ticks::ticks_down(self.0, tick_nanos)
    }

    /// The tick of a deadline at this reading: rounded up, as the rule is for deadlines.
    #[must_use]
    pub const fn ceil_ticks(self, tick_nanos: NonZeroU64) -> u64 {
        ticks::ticks_up(self.0, tick_nanos)
    }
}

impl fmt::Debug for Monotonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Monotonic").field(&Duration::from_nanos(self.0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_refused_or_saturate_and_never_wrap() {
        let nano = Duration::from_nanos(1);
        assert_eq!(Monotonic::MAX.checked_add(nano), None);
        assert_eq!(Monotonic::MAX.checked_add(Duration::ZERO), Some(Monotonic::MAX));
        assert_eq!(Monotonic::ZERO.checked_add(Duration::MAX), None);
        assert_eq!(Monotonic::ZERO.saturating_add(Duration::MAX), Monotonic::MAX);
        assert_eq!(Monotonic::ZERO.checked_since(Monotonic::from_nanos(1)), None);
        assert_eq!(Monotonic::ZERO.saturating_since(Monotonic::MAX), Duration::ZERO);
        let all = Duration::from_nanos(u64::MAX);
        assert_eq!(Monotonic::MAX.checked_since(Monotonic::ZERO), Some(all));
        let second = NonZeroU64::new(1_000_000_000).expect("not 0");
        assert_eq!(Monotonic::from_tick(u64::MAX, second), Monotonic::MAX);
    }

    #[test]
    fn now_rounds_down_and_deadlines_round_up() {
        let tick = NonZeroU64::new(1_000_000).expect("not 0");
        for (nanos, floor, ceil) in
            [(0, 0, 0), (1, 0, 1), (999_999, 0, 1), (1_000_000, 1, 1), (1_000_001, 1, 2)]
        {
            let reading = Monotonic::from_nanos(nanos);
            assert_eq!(reading.floor_ticks(tick), floor, "{nanos} ns");
            assert_eq!(reading.ceil_ticks(tick), ceil, "{nanos} ns");
            assert!(Monotonic::from_tick(ceil, tick) >= reading, "waking for {nanos} ns is early");
        }
    }
}
