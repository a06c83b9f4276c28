//! The jobs that the owners give out.

use crate::io::{Call, Job, JobId, Lane};

/// Numbers the jobs, and keeps them until the store hands them to its [`Io`](crate::Io). So no owner calls the disk itself.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    given_out: u64,
    ready: Vec<(Lane, Job)>,
}

impl Jobs {
    /// Gives out a job: `calls`, in this order. The jobs of a lane are done in the order in which they were given out.
    pub(super) fn add(&mut self, lane: Lane, mut calls: Vec<Call>) -> JobId {
        // The background has the lock. No file is made, and no checkpoint gets its name, in a directory that may belong to another process
        // by now.
        let makes = |call: &Call| matches!(call, Call::Create(_) | Call::Rename { .. });
        if lane == Lane::Background && calls.iter().any(makes) {
            calls.insert(0, Call::CheckLock);
        }
        self.given_out += 1;
        let id = JobId(self.given_out);
        self.ready.push((lane, Job { id, calls }));
        id
    }

    /// Takes the jobs that are not handed over yet, oldest first.
    pub(super) fn take_ready(&mut self) -> impl Iterator<Item = (Lane, Job)> + '_ {
        self.ready.drain(..)
    }
}
