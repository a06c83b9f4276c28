//! The implementations by name.

use anyhow::bail;

use super::hashed::Hashed;
use super::mutex::Locked;
use super::ours::{self, Ours};
use super::scale::Scale;
use super::sleep::Sleeps;
use super::task::Tasks;
use super::workload::Workload;
use super::{bare, jdk};
use crate::sample::Sample;

/// An implementation and how to measure it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    /// Ours are divided by the others.
    pub(crate) ours: bool,
    /// Nothing if it does not do that work.
    pub(crate) sample: Measure,
}

type Measure = fn(Workload, &Scale) -> anyhow::Result<Option<Sample>>;

const fn ours(name: &'static str, sample: Measure) -> Candidate {
    Candidate { name, ours: true, sample }
}

const fn other(name: &'static str, sample: Measure) -> Candidate {
    Candidate { name, ours: false, sample }
}

/// All of them, in the order in which they are measured and shown.
pub(crate) const CATALOG: [Candidate; 11] = [
    ours("timer", Workload::sample::<Ours<1_000, false>>),
    ours("timer-sleep", Workload::sample::<ours::Sleeps>),
    ours("timer-inline", Workload::sample_lateness::<Ours<1_000, true>>),
    ours("timer-100us", Workload::sample_lateness::<Ours<100, false>>),
    other("tokio-sleep", Workload::sample::<Sleeps>),
    other("tokio-task", Workload::sample_lateness::<Tasks>),
    other("hhwt", Workload::sample::<Hashed>),
    other("jdk-scheduled", jdk::sample),
    other("mutex-wheel", Workload::sample_ring::<Locked<false>>),
    other("mutex-wheel-clock", Workload::sample_ring::<Locked<true>>),
    other("bare-sleep", |workload, scale| Ok((workload == Workload::Lateness).then(|| bare::sample(scale)))),
];

/// The one of that name.
pub(crate) fn find(name: &str) -> anyhow::Result<&'static Candidate> {
    match CATALOG.iter().find(|candidate| candidate.name == name) {
        Some(candidate) => Ok(candidate),
        None => {
            let names = CATALOG.map(|candidate| candidate.name).join(", ");
            bail!("there is no implementation {name:?}; there are {names}")
        }
    }
}
