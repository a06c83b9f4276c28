//! The call that reads the jobs.

/// Reads the numbers and values of all jobs that the engine keeps.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ListJobs;
