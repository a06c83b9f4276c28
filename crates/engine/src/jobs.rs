//! [`Jobs`]: a number and a value each. The owners of the jobs write the values and know their meaning.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::calls::Unavailable;
use crate::job::{ChangeJob, JOB_BYTES_MAX, JobError, JobValue};
use crate::ledger::Ledger;
use crate::settings::{Rule, RuleName};
use crate::time::{Now, Seq};

/// At most this many jobs are kept: all of them are in memory, and in every checkpoint.
const JOBS_MAX: usize = 10_000;
/// A new job may begin if the values of all jobs, with its own, have at most this many bytes.
const BYTES_MAX: u64 = 16 << 20;

/// All jobs by number.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    by_id: BTreeMap<u64, JobValue>,
    /// Bytes of all values.
    bytes: u64,
    /// The last change of a job.
    changed: Seq,
}

impl Jobs {
    /// Takes over a job that the store has.
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

    /// The number of a new job. The clock has a part in it, so that a job of an emptied directory does not get the number of an older one.
    fn next_id(&self, now: Now) -> Result<u64, JobError> {
        let behind = self.newest().map_or(Some(1), |newest| newest.checked_add(1));
        behind.map(|behind| behind.max(now.wall.as_tick())).ok_or_else(|| self.too_many())
    }

    fn too_many(&self) -> JobError {
        JobError::TooMany { jobs: self.by_id.len(), bytes: self.bytes }
    }

    /// Returns the number of the job that this change is for, and its new value, if the change is allowed.
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

    /// Changes a job. A full disk refuses no change of a job: jobs are what frees space.
    ///
    /// # Errors
    /// A refusal leaves no trace.
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

    /// All jobs, in the order of their numbers.
    ///
    /// # Errors
    /// [`Unavailable::Indeterminate`]: the store has failed, and the last change may have been written down or not.
    pub(crate) fn list(&self, ledger: &Ledger) -> Result<Vec<(u64, JobValue)>, Unavailable> {
        ledger.doubt_since(self.changed)?;
        Ok(self.by_id.iter().map(|(&id, value)| (id, Arc::clone(value))).collect())
    }
}
