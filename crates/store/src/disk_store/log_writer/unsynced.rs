//! Frames that are written, but may not be synced yet. There are such frames only if commits are answered before they are synced.

use std::sync::Arc;

use super::super::jobs::Jobs;
use crate::io::{Call, JobId, Lane};

/// Frames that are written, but may not be synced yet, and the job that syncs them.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// The last frame that needs no sync any more. All frames before it need none either.
    synced: u64,
    /// The files that have frames after `synced`, and the number of the last frame in each.
    files: Vec<(Arc<str>, u64)>,
    /// The sync job that is under way, and the last frame that it covers.
    job: Option<(JobId, u64)>,
}

impl Unsynced {
    pub(super) fn after(frame: u64) -> Self {
        Self { synced: frame, files: Vec::new(), job: None }
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Returns the files to sync, so that all written frames are synced.
    pub(super) fn files(&self) -> impl Iterator<Item = &Arc<str>> {
        self.files.iter().map(|(file, _)| file)
    }

    /// Takes in that a frame was written to `file`.
    pub(super) fn written(&mut self, file: &Arc<str>, frame: u64) {
        match self.files.last_mut() {
            Some((last, last_frame)) if last == file => *last_frame = frame,
            _ => self.files.push((Arc::clone(file), frame)),
        }
    }

    /// Takes in that all frames up to this one are synced, or need no sync any more.
    pub(super) fn synced_through(&mut self, frame: u64) {
        self.synced = self.synced.max(frame);
        self.files.retain(|(_, last)| *last > frame);
    }

    /// Gives out a job that syncs the files, if there are any and no sync is under way. `last` is the last frame that was written.
    pub(super) fn sync(&mut self, last: u64, jobs: &mut Jobs) {
        if self.job.is_none() && !self.files.is_empty() {
            let calls = self.files().cloned().map(Call::Sync).collect();
            self.job = Some((jobs.add(Lane::Background, calls), last));
        }
    }

    pub(super) fn has(&self, job: JobId) -> bool {
        self.job.is_some_and(|(sync, _)| sync == job)
    }

    /// Takes in that a job is over, whether it succeeded or not. Returns the last frame that the job covers; `None` if the job is not the
    /// sync under way.
    pub(super) fn completed(&mut self, job: JobId) -> Option<u64> {
        self.job.take_if(|(sync, _)| *sync == job).map(|(_, frame)| frame)
    }
}
