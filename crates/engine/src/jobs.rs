//! [`Jobs`]: all jobs, each with a number and a value. The owners of the jobs write the values and know what the values mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::calls::{ChangeJob, JOB_BYTES_MAX, JobError, JobValue, Unavailable};
use crate::ledger::Ledger;
use crate::settings::{Rule, RuleName};
use crate::time::{Now, Seq};

/// At most this many jobs are kept, because all jobs are in memory and in every checkpoint.
const JOBS_MAX: usize = 10_000;
/// A new job is refused if the values of all jobs would have more than this many bytes with the new value.
const BYTES_MAX: u64 = 16 << 20;

/// All jobs by number.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    by_id: BTreeMap<u64, JobValue>,
    /// The size of all values (bytes).
    bytes: u64,
    /// The seq of the last change of a job.
    changed: Seq,
}

impl Jobs {
    /// Takes over a job from the store, when the engine starts.
    pub(crate) fn restore(&mut self, id: u64, value: &JobValue) {
        self.set(id, Some(Arc::clone(value)));
    }

    fn set(&mut self, id: u64, value: Option<JobValue>) {
        let bytes = |value: &JobValue| value.len() as u64;
        self.bytes += value.as_ref().map_or(0, bytes);
        let before = match value {
            Some(value) => self.by_id.insert(id, value),
            None => self.by_id.remove(&id),
        };
        self.bytes -= before.as_ref().map_or(0, bytes);
    }

    fn newest(&self) -> Option<u64> {
        self.by_id.last_key_value().map(|(&id, _)| id)
    }

    /// Returns the number for a new job: the number after the highest one in use, or the wall clock (ms) if that is higher. So in a
    /// directory that was emptied, a new job does not get the number of an old job.
    fn next_id(&self, now: Now) -> Result<u64, JobError> {
        let behind = self.newest().map_or(Some(1), |newest| newest.checked_add(1));
        behind.map(|behind| behind.max(now.wall.as_tick())).ok_or_else(|| self.too_many())
    }

    fn too_many(&self) -> JobError {
        JobError::TooMany { jobs: self.by_id.len(), bytes: self.bytes }
    }

    /// Checks whether a change is allowed. Returns the number of the job and its new value. `None` as the value: the job is to be
    /// forgotten.
    fn check(&self, now: Now, change: ChangeJob) -> Result<(u64, Option<JobValue>), JobError> {
        let (id, value) = match change {
            ChangeJob::Begin { value } => (self.next_id(now)?, Some(value)),
            ChangeJob::Keep { id, value } => (id, Some(value)),
            ChangeJob::Forget { id } => (id, None),
        };
        let is_kept = self.by_id.contains_key(&id);
        match &value {
            None if !is_kept => Err(JobError::NotFound),
            None if self.newest() == Some(id) => Err(JobError::Newest),
            Some(value) if value.len() > JOB_BYTES_MAX => Err(JobError::TooLong { limit: JOB_BYTES_MAX }),
            Some(value)
                if !is_kept
                    && (self.by_id.len() >= JOBS_MAX || self.bytes + value.len() as u64 > BYTES_MAX) =>
            {
                Err(self.too_many())
            }
            _ => Ok((id, value)),
        }
    }

    /// Changes a job, and returns its number. No change of a job is refused because the disk is full, because a job may be needed to free
    /// space.
    ///
    /// # Errors
    /// [`JobError`]: the change was refused, and all jobs are as before.
    pub(crate) fn change(
        &mut self,
        ledger: &mut Ledger,
        now: Now,
        change: ChangeJob,
    ) -> Result<u64, JobError> {
        let (id, value) = self.check(now, change)?;
        self.set(id, value.clone());
        self.changed = ledger.next_seq();
        ledger.note_rule((RuleName::Job(id), value.map(|value| Arc::new(Rule::Job(value)))));
        Ok(id)
    }

    /// Returns all jobs, in the order of their numbers.
    ///
    /// # Errors
    /// [`Unavailable::Indeterminate`]: the store has failed, and it is unknown whether the last change of a job is durable.
    pub(crate) fn list(&self, ledger: &Ledger) -> Result<Vec<(u64, JobValue)>, Unavailable> {
        ledger.doubt_since(self.changed)?;
        Ok(self.by_id.iter().map(|(&id, value)| (id, Arc::clone(value))).collect())
    }
}
