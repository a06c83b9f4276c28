//! Reading the jobs that are kept.

/// Reads all jobs that are kept.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ListJobs;
