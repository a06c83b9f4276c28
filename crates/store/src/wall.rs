//! [`WallClock`]: a wall clock that is not the clock of this machine, and [`WallSpan`]: what is known of it.

use std::sync::Arc;

/// An interval in which a wall clock is now (ns since the Unix epoch). Both ends belong to it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct WallSpan {
    /// The clock shows at least this. What is due by this instant is due by the clock.
    pub from_ns: i128,
    /// The clock shows at most this. What is due a delay after this instant is due no earlier than the delay after now.
    pub to_ns: i128,
}

impl WallSpan {
    /// Returns the interval of a clock that is known exactly.
    #[must_use]
    pub const fn exact(wall_ns: i128) -> Self {
        Self { from_ns: wall_ns, to_ns: wall_ns }
    }

    /// Returns the interval that both intervals contain; `None`: they have no instant in common.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        let common = Self { from_ns: self.from_ns.max(other.from_ns), to_ns: self.to_ns.min(other.to_ns) };
        (common.from_ns <= common.to_ns).then_some(common)
    }

    /// Returns the interval this much later (ns); a negative number means earlier.
    #[must_use]
    pub const fn later(self, by_ns: i128) -> Self {
        Self { from_ns: self.from_ns + by_ns, to_ns: self.to_ns + by_ns }
    }

    /// Returns how far this interval is ahead of the other (ns): the distance between them, negative if this one is behind, and 0 if they have
    /// an instant in common.
    #[must_use]
    pub fn ahead_ns(self, other: Self) -> i128 {
        (self.from_ns - other.to_ns).max(0) + (self.to_ns - other.from_ns).min(0)
    }

    /// Returns the width of the interval (ns).
    #[must_use]
    pub fn width_ns(self) -> u64 {
        u64::try_from(self.to_ns - self.from_ns).unwrap_or(if self.to_ns < self.from_ns {
            0
        } else {
            u64::MAX
        })
    }
}

/// A wall clock that is not the clock of this machine. It is known to be in an interval.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> Option<WallSpan> + Send + Sync>);

impl WallClock {
    /// Returns the clock that is in the interval that `now` returns, or the clock of this machine while the result is `None`. The queue
    /// calls `now` before each turn of a shard, so the call must not block.
    #[must_use]
    pub fn new(now: impl Fn() -> Option<WallSpan> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Reads the clock.
    #[must_use]
    pub fn now(&self) -> Option<WallSpan> {
        (self.0)()
    }
}

impl std::fmt::Debug for WallClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WallClock").field(&self.now()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_intervals_are_apart_or_have_a_common_one() {
        let span = |from_ns, to_ns| WallSpan { from_ns, to_ns };
        for (one, other, ahead_ns, common) in [
            (span(10, 20), span(30, 40), -10, None),
            (span(30, 40), span(10, 20), 10, None),
            (span(10, 20), span(20, 40), 0, Some(span(20, 20))),
            (span(10, 40), span(20, 30), 0, Some(span(20, 30))),
            (WallSpan::exact(5), WallSpan::exact(5), 0, Some(span(5, 5))),
            (WallSpan::exact(4), WallSpan::exact(5), -1, None),
        ] {
            assert_eq!(one.ahead_ns(other), ahead_ns, "{one:?} {other:?}");
            assert_eq!(one.intersection(other), common, "{one:?} {other:?}");
            assert_eq!((other.ahead_ns(one), other.intersection(one)), (-ahead_ns, common));
        }
        assert_eq!((span(3, 8).width_ns(), WallSpan::exact(8).width_ns()), (5, 0));
        assert_eq!(span(3, 8).later(-4), span(-1, 4));
    }
}
