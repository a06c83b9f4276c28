//! [`Workload`]: what is measured, by name, at which sizes, and how long.

use super::effort::{Effort, MILLION};
use super::subject::{Store, Subject};
use super::{drain, memory, pairs, reschedule, rpc, sparse};
use crate::sample::Sample;

/// A piece of work that everybody has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Cancel a random pending timer and start another one; no time passes.
    W1,
    /// Start N timers, then go tick by tick until all have fired.
    W2,
    /// Time-outs of requests, most of which are answered soon.
    W3,
    /// From each of few timers to the next one, over 30 days.
    W4,
    /// Move a random pending timer, to any time and to a later one; no time passes.
    W5,
    /// Resident memory for each pending timer.
    W6,
}

impl Workload {
    /// As it is written in tables and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::W1 => "w1",
            Self::W2 => "w2",
            Self::W3 => "w3",
            Self::W4 => "w4",
            Self::W5 => "w5",
            Self::W6 => "w6",
        }
    }

    /// The sizes to measure when so many timers were asked for. Some workloads have a size of their own.
    pub(crate) fn sizes(self, asked: &[u64]) -> Vec<u64> {
        match self {
            Self::W1 | Self::W2 => asked.to_vec(),
            Self::W3 => vec![300_000],
            Self::W4 => vec![1_000],
            // Beyond a million it says the same as the pairs and takes minutes.
            Self::W5 => asked.iter().copied().max().map(|n| n.min(MILLION)).into_iter().collect(),
            // The largest, where what a structure holds besides its timers is lost in the sum.
            Self::W6 => asked.iter().copied().max().into_iter().collect(),
        }
    }

    /// Memory is the same in every round, and what takes minutes gets three rounds at most.
    pub(crate) fn rounds(self, n: u64, asked: u32) -> u32 {
        match self {
            Self::W6 => 1,
            Self::W3 => asked.min(3),
            _ if n > MILLION => asked.min(3),
            Self::W1 | Self::W2 | Self::W4 | Self::W5 => asked,
        }
    }

    /// Does it with a queue of timers.
    pub(crate) fn sample<S: Subject>(self, n: u64, effort: Effort) -> Option<Sample> {
        Some(match self {
            Self::W1 => pairs::sample::<S>(n, effort),
            Self::W2 => drain::sample::<S>(n, effort),
            Self::W3 => rpc::sample::<S>(n, effort),
            Self::W4 => sparse::sample::<S>(n, effort),
            Self::W5 => reschedule::sample::<S>(n, effort),
            Self::W6 => memory::sample::<S>(n),
        })
    }

    /// Does it with something that has no time.
    pub(crate) fn sample_store<S: Store>(self, n: u64, effort: Effort) -> Option<Sample> {
        match self {
            Self::W1 => Some(pairs::sample::<S>(n, effort)),
            Self::W6 => Some(memory::sample::<S>(n)),
            Self::W2 | Self::W3 | Self::W4 | Self::W5 => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_with_a_size_of_its_own_keeps_it() {
        let asked = [10_000, 1_000_000, 10_000_000];
        assert_eq!(Workload::W1.sizes(&asked), asked);
        assert_eq!(Workload::W3.sizes(&asked), [300_000]);
        assert_eq!(Workload::W4.sizes(&[1]), [1_000]);
        assert_eq!(Workload::W5.sizes(&asked), [1_000_000]);
        assert_eq!(Workload::W5.sizes(&asked[..1]), [10_000]);
        assert_eq!(Workload::W6.sizes(&asked), asked[2..]);
    }

    #[test]
    fn what_takes_long_is_done_less_often() {
        assert_eq!([10_000, 1_000_000, 10_000_000].map(|n| Workload::W1.rounds(n, 5)), [5, 5, 3]);
        assert_eq!(
            [Workload::W3, Workload::W4, Workload::W6].map(|workload| workload.rounds(1, 5)),
            [3, 5, 1]
        );
        assert_eq!(Workload::W3.rounds(1, 2), 2);
    }
}
