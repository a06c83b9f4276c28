//! The implementations by name.

use anyhow::bail;
use tickwheel_core::classic::{HashedWheel, HeapQueue, HierarchicalWheel, SimpleWheel, SortedList};

use super::classic;
use super::delay_queue::Delays;
use super::effort::Effort;
use super::hashed::Hashed;
use super::heap::LazyHeap;
use super::limits::{Lines, append};
use super::nexus::Nexus;
use super::ours::Ours;
use super::slab::Slab;
use super::sleep::Sleeps;
use super::tree::Tree;
use super::workload::Workload;
use crate::sample::Sample;

/// What an implementation is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The wheel to use.
    Ours,
    /// The textbook.
    Classic,
    /// Somebody else's queue of timers.
    Peer,
    /// Less work than any queue of timers has to do.
    Limit,
}

/// An implementation and how to measure it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    /// `None` if it does not do that work.
    pub(crate) sample: fn(Workload, u64, Effort) -> Option<Sample>,
}

/// All of them, in the order in which they are measured and shown.
pub(crate) const CATALOG: [Candidate; 15] = [
    Candidate { name: "wheel", role: Role::Ours, sample: Workload::sample::<Ours> },
    Candidate { name: "line", role: Role::Limit, sample: Workload::sample_store::<Lines> },
    Candidate { name: "append", role: Role::Limit, sample: append },
    Candidate { name: "slab", role: Role::Limit, sample: Workload::sample_store::<Slab<u64>> },
    Candidate { name: "lazy-heap", role: Role::Peer, sample: Workload::sample::<LazyHeap> },
    Candidate { name: "btree", role: Role::Peer, sample: Workload::sample::<Tree> },
    Candidate { name: "nexus-timer", role: Role::Peer, sample: Workload::sample::<Nexus> },
    Candidate { name: "hhwt", role: Role::Peer, sample: Workload::sample::<Hashed> },
    Candidate { name: "tokio-delay-queue", role: Role::Peer, sample: Workload::sample::<Delays> },
    Candidate { name: "tokio-sleep", role: Role::Peer, sample: Workload::sample::<Sleeps> },
    Candidate { name: "sorted-list", role: Role::Classic, sample: classic::sample::<SortedList<u64>> },
    Candidate { name: "heap-queue", role: Role::Classic, sample: classic::sample::<HeapQueue<u64>> },
    Candidate { name: "simple-wheel", role: Role::Classic, sample: classic::sample::<SimpleWheel<u64>> },
    Candidate { name: "hashed-wheel", role: Role::Classic, sample: classic::sample::<HashedWheel<u64>> },
    Candidate {
        name: "hierarchical-wheel",
        role: Role::Classic,
        sample: classic::sample::<HierarchicalWheel<u64>>,
    },
];

/// The one of that name.
pub(crate) fn find(name: &str) -> anyhow::Result<&'static Candidate> {
    match CATALOG.iter().find(|candidate| candidate.name == name) {
        Some(candidate) => Ok(candidate),
        None => bail!("there is no implementation {name:?}; there are {}", names()),
    }
}

/// All names, for people.
pub(crate) fn names() -> String {
    CATALOG.map(|candidate| candidate.name).join(", ")
}
