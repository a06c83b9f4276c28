//! [`Workload`]: what is measured, by name, and how long.

use super::sample::Sample;
use super::subject::{Store, Subject};
use super::{drain, pairs, reschedule};

/// The longest delay, in ticks of 1 ms, where a workload does not say otherwise. The shortest is 1.
pub(crate) const DELAY_MAX: u64 = 60_000;

/// A piece of work that everybody has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Cancel a random pending timer and start another one; no time passes.
    W1,
    /// Start N timers, then go tick by tick until all have fired.
    W2,
    /// Move a random pending timer, to any time and to a later one; no time passes.
    W5,
}

impl Workload {
    /// As it is written in tables and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::W1 => "w1",
            Self::W2 => "w2",
            Self::W5 => "w5",
        }
    }

    /// Does it with a queue of timers.
    pub(crate) fn sample<S: Subject>(self, n: u64, effort: Effort) -> Option<Sample> {
        Some(match self {
            Self::W1 => pairs::sample::<S>(n, effort),
            Self::W2 => drain::sample::<S>(n, effort),
            Self::W5 => reschedule::sample::<S>(n, effort),
        })
    }

    /// Does it with something that has no time.
    pub(crate) fn sample_store<S: Store>(self, n: u64, effort: Effort) -> Option<Sample> {
        match self {
            Self::W1 => Some(pairs::sample::<S>(n, effort)),
            Self::W2 | Self::W5 => None,
        }
    }
}

/// How much is enough.
#[derive(Clone, Copy, Debug)]
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

    /// Processor time after which a measured span ends early, in nanoseconds: 4 s.
    pub(crate) fn nanos_max(self) -> f64 {
        4e9
    }
}
