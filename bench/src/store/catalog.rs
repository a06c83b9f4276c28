//! The implementations by name.

use std::path::Path;

use anyhow::bail;

use super::ours::Ours;
use super::peer::Peer;
use super::reopen::fill_for_ever;
use super::visit::{self, Samples};
use super::workload::{Visit, Workload};

/// An implementation and how to measure it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    /// Ours are divided by the others.
    pub(crate) ours: bool,
    /// Whether it does that work.
    pub(crate) does: fn(Workload) -> bool,
    pub(crate) sample: fn(&Visit, &str) -> anyhow::Result<Samples>,
    /// Fills a directory and goes on until it is killed, if it is a store.
    pub(crate) fill: Option<fn(&Path, u64) -> anyhow::Result<()>>,
}

/// All of them, in the order in which they are measured and shown.
pub(crate) const CATALOG: [Candidate; 7] = [
    Candidate {
        name: "disk",
        ours: false,
        does: |workload| workload == Workload::Disk,
        sample: visit::disk,
        fill: None,
    },
    Candidate {
        name: "store",
        ours: true,
        does: |workload| workload != Workload::Disk,
        sample: visit::keeper::<Ours>,
        fill: Some(fill_for_ever::<Ours>),
    },
    Candidate {
        name: "queue",
        ours: true,
        does: |workload| matches!(workload, Workload::S1 | Workload::S3),
        sample: visit::queue,
        fill: None,
    },
    Candidate {
        name: "queue-async",
        ours: true,
        does: |workload| workload == Workload::S1,
        sample: visit::queue_async,
        fill: None,
    },
    Candidate {
        name: "http",
        ours: true,
        does: |workload| workload == Workload::S1,
        sample: visit::web,
        fill: None,
    },
    Candidate {
        name: "fjall",
        ours: false,
        does: |workload| workload != Workload::Disk,
        sample: visit::keeper::<Peer>,
        fill: Some(fill_for_ever::<Peer>),
    },
    Candidate {
        name: "fjall-alone",
        ours: false,
        does: |workload| workload == Workload::S1,
        sample: visit::peer_alone,
        fill: None,
    },
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
