//! [`Workload`]: what is measured, by name, at which sizes, how often.

use std::time::Duration;

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Workload {
    /// The disk alone: syncs of three sizes, and a stream.
    Disk,
    /// Durable puts by 64 clients, each of which waits for its answer.
    S1,
    /// Batches of 1000 puts.
    S2,
    /// Tasks that are put and cancelled before their time.
    S3,
    /// Taking tasks in due order, and ending them.
    S4,
    /// Look-ups by key.
    S5,
    /// A scan from the earliest task, before and after 500,000 deletes there.
    S6,
    /// Single commits at their worst, while everything else goes on.
    S7,
    /// Resident memory, with keys made by the server.
    S8,
    /// Resident memory, with keys of the owner.
    S8Own,
    /// Bytes written in the life of a task.
    S9,
    /// Opening after a kill.
    S10,
}

/// Those that share one filled store, in the order in which they are done: what changes least goes first, and time is moved
/// only at the end.
pub(crate) const SHARED: [Workload; 7] =
    [Workload::S1, Workload::S5, Workload::S3, Workload::S2, Workload::S6, Workload::S7, Workload::S4];

impl Workload {
    /// As it is written in tables and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::S1 => "s1",
            Self::S2 => "s2",
            Self::S3 => "s3",
            Self::S4 => "s4",
            Self::S5 => "s5",
            Self::S6 => "s6",
            Self::S7 => "s7",
            Self::S8 => "s8",
            Self::S8Own => "s8-own",
            Self::S9 => "s9",
            Self::S10 => "s10",
        }
    }

    /// What is the same in every round is measured once, and what takes minutes three times at most.
    pub(crate) fn rounds(self, asked: u32) -> u32 {
        match self {
            Self::S8 | Self::S8Own | Self::S9 => 1,
            Self::S10 => asked.min(3),
            _ => asked,
        }
    }

    /// Whether it is about memory, which has sizes of its own.
    pub(crate) fn is_memory(self) -> bool {
        matches!(self, Self::S8 | Self::S8Own)
    }
}

/// Some workloads on tasks that one process has to put first, and how much of it.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    /// All of them from [`SHARED`], or one.
    pub(crate) workloads: Vec<Workload>,
    /// Tasks that are pending when it begins.
    pub(crate) n: u64,
    /// Time for one measurement.
    pub(crate) span: Duration,
    /// Where to make the data: a directory that somebody else removes.
    pub(crate) dir: std::path::PathBuf,
}

/// The visits for these workloads: together where they share a store.
pub(crate) fn visits(workloads: &[Workload]) -> Vec<Vec<Workload>> {
    let shared: Vec<Workload> = SHARED.into_iter().filter(|shared| workloads.contains(shared)).collect();
    let (mut visits, mut is_shared_done) = (Vec::new(), shared.is_empty());
    for workload in workloads {
        if !SHARED.contains(workload) {
            visits.push(vec![*workload]);
        } else if !is_shared_done {
            visits.push(shared.clone());
            is_shared_done = true;
        }
    }
    visits
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn workloads_on_one_store_are_done_together_and_in_order() {
        let asked = [Workload::Disk, Workload::S4, Workload::S1, Workload::S9];
        let expected = [vec![Workload::Disk], vec![Workload::S1, Workload::S4], vec![Workload::S9]];
        assert_eq!(visits(&asked), expected);
        let all: Vec<Workload> = visits(Workload::value_variants()).concat();
        assert_eq!(all.len(), Workload::value_variants().len());
    }

    #[test]
    fn a_name_is_that_of_the_command_line() {
        for workload in Workload::value_variants() {
            let value = workload.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), workload.name());
        }
    }
}
