//! [`Closing`]: the renewal of the stamps after a release.

use tickwheel_engine::RequestId;

use super::jobs::Jobs;
use crate::io::{Completion, JobId, Lane};
use crate::stamp::Stamps;

/// The renewal of the stamps after a release, which waits for it. A store that is one of several shards has no stamps of its own.
#[derive(Debug)]
pub(super) struct Closing {
    stamps: Option<Stamps>,
    /// The job that writes the stamps, and the release that waits for it.
    under_way: Option<(JobId, RequestId)>,
}

impl Closing {
    pub(super) fn new(stamps: Option<Stamps>) -> Self {
        Self { stamps, under_way: None }
    }

    /// Begins to renew the stamps after the release `id`. Returns whether there is something to do: otherwise the release is over.
    pub(super) fn begin(&mut self, id: RequestId, jobs: &mut Jobs) -> bool {
        let calls = self.stamps.as_ref().map(Stamps::calls).unwrap_or_default();
        if calls.is_empty() || self.under_way.is_some() {
            return false;
        }
        self.under_way = Some((jobs.add(Lane::Background, calls), id));
        true
    }

    /// Whether a release waits for the stamps.
    pub(super) fn is_working(&self) -> bool {
        self.under_way.is_some()
    }

    /// Takes the completion of a job. Returns the release that is over now, if the job wrote the stamps. A release succeeds without new
    /// stamps, too: the next start then takes the stamps that were written.
    pub(super) fn completed(&mut self, completion: &Completion) -> Option<RequestId> {
        let (_, id) = self.under_way.take_if(|(job, _)| *job == completion.id)?;
        if let Some(stamps) = &mut self.stamps {
            stamps.renewed(completion.result.is_ok());
        }
        Some(id)
    }
}
