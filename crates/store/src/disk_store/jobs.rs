//! The jobs that the parts of a store give to the disk.

use crate::io::{Call, Job, JobId, Lane};

/// Numbers the jobs, and keeps them until the store hands them to its [`Io`](crate::Io). So the log writer, the reader and the maintenance
/// make no calls to the disk themselves.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    given_out: u64,
    ready: Vec<(Lane, Job)>,
}

impl Jobs {
    /// Adds a job that makes `calls` in their order, and returns the id of the job. If the job is to be done in the background and makes or
    /// renames a file, adds a check of the lock before `calls`. The jobs of one lane are done in the order in which they were added.
    pub(super) fn add(&mut self, lane: Lane, mut calls: Vec<Call>) -> JobId {
        // The disk handle of the background lane has the lock, so only this lane can check the lock. If another process may own the
        // directory, the job fails before it makes or renames a file.
        let makes = |call: &Call| matches!(call, Call::Create(_) | Call::Rename { .. });
        if lane == Lane::Background && calls.iter().any(makes) {
            calls.insert(0, Call::CheckLock);
        }
        self.given_out += 1;
        let id = JobId(self.given_out);
        self.ready.push((lane, Job { id, calls }));
        id
    }

    /// Takes the jobs that were not handed to the `Io` yet, oldest first.
    pub(super) fn take_ready(&mut self) -> impl Iterator<Item = (Lane, Job)> + '_ {
        self.ready.drain(..)
    }
}
