//! What of the log is written and not known to be synced: nothing, but for acknowledgements that do not wait for it.

use std::sync::Arc;

use super::store::DiskStore;
use crate::disk::Disk;
use crate::io::{Call, Completion, Io, JobId, Lane};

/// Frames that are written and not known to be synced.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// The last frame that is known to be synced, with all before it.
    synced: u64,
    /// Files with later frames, and the last one in each.
    files: Vec<(Arc<str>, u64)>,
    /// The sync under way, and the frame up to which it counts.
    job: Option<(JobId, u64)>,
}

impl Unsynced {
    pub(super) fn after(frame: u64) -> Self {
        Self { synced: frame, files: Vec::new(), job: None }
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Files that have to be synced for all frames to be.
    pub(super) fn files(&self) -> impl Iterator<Item = &Arc<str>> {
        self.files.iter().map(|(file, _)| file)
    }

    /// A frame was written.
    pub(super) fn written(&mut self, file: &Arc<str>, frame: u64) {
        match self.files.last_mut() {
            Some((last, last_frame)) if last == file => *last_frame = frame,
            _ => self.files.push((Arc::clone(file), frame)),
        }
    }

    /// All up to this frame are synced.
    pub(super) fn synced_through(&mut self, frame: u64) {
        self.synced = self.synced.max(frame);
        self.files.retain(|(_, last)| *last > frame);
    }
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// Begins to sync what is not, if nothing does. It goes on as long as something is written, one sync after the other.
    ///
    /// A checkpoint counts on it: what a step of it says of a death rests on frames that are written by then. The background does its jobs in their
    /// order, and this one is handed out first in each poll; so when a step is over, a sync of all frames before it is over or
    /// handed out before the next step. The name comes some steps after the last word on any death, so those are synced.
    pub(super) fn sync_log(&mut self) {
        if self.unsynced.job.is_some() || self.unsynced.files.is_empty() || self.failed.is_some() {
            return;
        }
        let calls = self.unsynced.files().cloned().map(Call::Sync).collect();
        let job = self.send(Lane::Background, calls);
        self.unsynced.job = Some((job, self.end.frame));
    }

    /// Whether the completion was of such a sync.
    pub(super) fn sync_completed(&mut self, completion: &Completion) -> bool {
        let Some((_, frame)) = self.unsynced.job.take_if(|(job, _)| *job == completion.id) else {
            return false;
        };
        match &completion.result {
            Ok(()) => self.unsynced.synced_through(frame),
            Err(error) => self.fail(error),
        }
        true
    }
}
