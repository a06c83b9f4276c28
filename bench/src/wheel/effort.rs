//! [`Effort`]: how long a piece of work is measured, and the sizes that all pieces share.

use crate::cpu::CpuTime;

/// The longest delay, in ticks of 1 ms, where a workload does not say otherwise. The shortest is 1.
pub(crate) const DELAY_MAX: u64 = 60_000;

/// Operations between two looks at the clock, which is then lost in them.
const BLOCK: u64 = 1 << 12;

/// More timers than that take long to start.
pub(crate) const MILLION: u64 = 1_000_000;

/// How much is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Millions of operations, for figures that can be compared.
    Full,
    /// Just enough to see that it works.
    #[cfg(test)]
    Smoke,
}

impl Effort {
    /// How many operations to measure when it should be at least `least`.
    pub(crate) fn operations(self, least: u64) -> u64 {
        match self {
            Self::Full => least.max(2_000_000),
            #[cfg(test)]
            Self::Smoke => least,
        }
    }

    /// Does so many operations, in blocks, and says how many were done in how many nanoseconds: fewer than asked for if
    /// [`nanos_max`](Self::nanos_max) was over before. Inlined, so that the block is part of the caller's loop.
    #[inline]
    pub(crate) fn measure(self, operations: u64, block: impl FnMut(u64)) -> (u64, f64) {
        run_for(operations, self.nanos_max(), block)
    }

    /// The same for a quarter of the time, before what is measured.
    #[inline]
    pub(crate) fn warm_up(self, operations: u64, block: impl FnMut(u64)) {
        run_for(operations, self.nanos_max() / 4.0, block);
    }

    /// Processor time after which a measured span ends early, in nanoseconds. Who needs longer is slow enough to be
    /// measured well by then; a check of the counts is left out.
    pub(crate) const fn nanos_max(self) -> f64 {
        match self {
            Self::Full => 4e9,
            #[cfg(test)]
            Self::Smoke => f64::INFINITY,
        }
    }
}

#[inline]
fn run_for(operations: u64, nanos_max: f64, mut block: impl FnMut(u64)) -> (u64, f64) {
    let begun = CpuTime::now();
    let (mut done, mut nanos) = (0, 0.0);
    while done < operations && nanos < nanos_max {
        let some = BLOCK.min(operations - done);
        block(some);
        done += some;
        nanos = begun.elapsed_nanos();
    }
    (done, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_ends_when_the_work_or_the_time_is_over() {
        let mut done = 0;
        assert_eq!(Effort::Smoke.measure(10_000, |block| done += block).0, 10_000);
        assert_eq!(done, 10_000);
        assert_eq!(run_for(10_000, 0.0, |_| unreachable!("no time")).0, 0);
        assert_eq!(run_for(10 * BLOCK, f64::MIN_POSITIVE, drop).0, BLOCK);
        assert_eq!(Effort::Smoke.measure(0, |_| unreachable!("nothing to do")), (0, 0.0));
    }
}
