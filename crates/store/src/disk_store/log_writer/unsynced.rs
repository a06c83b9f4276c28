//! Frames that are written and not known to be synced. There are none unless commits are answered before they are synced.

use std::sync::Arc;

use super::super::jobs::Jobs;
use crate::io::{Call, JobId, Lane};

/// Frames that are written and not known to be synced, and the job that syncs them.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// The last frame that is known to be synced, with all before it.
    synced: u64,
    /// Files with later frames, and the last one in each.
    files: Vec<(Arc<str>, u64)>,
    /// The sync under way, and the last frame that it covers.
    job: Option<(JobId, u64)>,
}

impl Unsynced {
    pub(super) fn after(frame: u64) -> Self {
        Self { synced: frame, files: Vec::new(), job: None }
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// The files that have to be synced, so that all frames are synced.
    pub(super) fn files(&self) -> impl Iterator<Item = &Arc<str>> {
        self.files.iter().map(|(file, _)| file)
    }

    /// Takes in that a frame was written.
    pub(super) fn written(&mut self, file: &Arc<str>, frame: u64) {
        match self.files.last_mut() {
            Some((last, last_frame)) if last == file => *last_frame = frame,
            _ => self.files.push((Arc::clone(file), frame)),
        }
    }

    /// Takes in that all frames up to this one are synced.
    pub(super) fn synced_through(&mut self, frame: u64) {
        self.synced = self.synced.max(frame);
        self.files.retain(|(_, last)| *last > frame);
    }

    /// Begins to sync the files, if there are any and no sync is under way. `last` is the last frame that is written.
    pub(super) fn sync(&mut self, last: u64, jobs: &mut Jobs) {
        if self.job.is_none() && !self.files.is_empty() {
            let calls = self.files().cloned().map(Call::Sync).collect();
            self.job = Some((jobs.add(Lane::Background, calls), last));
        }
    }

    pub(super) fn has(&self, job: JobId) -> bool {
        self.job.is_some_and(|(sync, _)| sync == job)
    }

    /// The last frame that this job covered, if the job was the sync. The sync is not under way any more.
    pub(super) fn completed(&mut self, job: JobId) -> Option<u64> {
        self.job.take_if(|(sync, _)| *sync == job).map(|(_, frame)| frame)
    }
}
