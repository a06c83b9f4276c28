//! The plan of a round.

use clap::ValueEnum;

/// The measured operation.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Put a job.
    Put,
    /// Put a job, reserve it and delete it, one command after the other.
    Cycle,
    /// Reserve jobs that become due one after the other while workers wait for them.
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
    /// The time over which a lateness round puts its jobs (ms). The jobs also fall due over this time.
    pub(crate) span_ms: u64,
    /// Do not delete the jobs of a round of puts.
    pub(crate) keep: bool,
}

impl Plan {
    /// The number of jobs for connection `connection` out of `of` connections.
    pub(super) fn share(&self, connection: usize, of: usize) -> u64 {
        let (of, connection) = (of as u64, connection as u64);
        self.jobs / of + u64::from(connection < self.jobs % of)
    }
}
