//! The plan of a round.

use clap::ValueEnum;

/// The measured operation.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Puts.
    Put,
    /// A put, a reserve of the same job, and its delete, one after the other.
    Cycle,
    /// Jobs that become due one after the other while workers wait for them.
    Lateness,
}

/// One round.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    pub(crate) connections: usize,
    /// Commands under way on each connection; for cycles, the number of cycles.
    pub(crate) depth: usize,
    pub(crate) jobs: u64,
    pub(crate) payload_bytes: usize,
    pub(crate) delay_s: u32,
    /// The time over which a lateness round puts its jobs, and over which they fall due.
    pub(crate) span_ms: u64,
    /// Keep the jobs of a round of puts.
    pub(crate) keep: bool,
}

impl Plan {
    /// This connection's share of the jobs.
    pub(super) fn share(&self, connection: usize, of: usize) -> u64 {
        let (of, connection) = (of as u64, connection as u64);
        self.jobs / of + u64::from(connection < self.jobs % of)
    }
}
