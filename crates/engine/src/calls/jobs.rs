//! The calls on jobs. A job is a number and a value. The owner of the job writes the value and knows what the value means.

use std::sync::Arc;

use super::unavailable::Unavailable;

/// The value of a job (bytes). The owner of the job writes and reads the value; the engine does not read it.
pub type JobValue = Arc<[u8]>;

/// A change of one job. For the engine a job is a number and a value without a meaning. No change of a job is refused because the disk is
/// full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeJob {
    /// Keeps a new job. The answer has the number of the job, which is higher than the numbers of all other jobs.
    Begin {
        /// The value, at most [`JOB_BYTES_MAX`] bytes.
        value: JobValue,
    },
    /// Gives a job another value. If no job has this number, keeps a new job with this number, for example a job from another store.
    Keep {
        /// The number.
        id: u64,
        /// The new value, at most [`JOB_BYTES_MAX`] bytes.
        value: JobValue,
    },
    /// Forgets a job. The job with the highest number cannot be forgotten, because the number of the next job is counted from it.
    Forget {
        /// The number.
        id: u64,
    },
}

/// The longest value of a job (bytes).
pub const JOB_BYTES_MAX: usize = 64 << 10;

/// Why a job was not changed. After the refusal all jobs are as before. One exception: after [`Unavailable::Indeterminate`] the job may
/// have been changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JobError {
    /// No job has this number.
    #[error("no job has this number")]
    NotFound,
    /// The job cannot be forgotten: it has the highest number, and the number of the next job is counted from it.
    #[error("the newest job cannot be forgotten")]
    Newest,
    /// The value is too long.
    #[error("the value of a job has at most {limit} bytes")]
    TooLong {
        /// The longest value that is allowed (bytes).
        limit: usize,
    },
    /// The change would exceed the limit for the number of jobs or for the bytes of their values, or no higher number is left for a new
    /// job.
    #[error("there are {jobs} jobs with {bytes} bytes, and no more can be")]
    TooMany {
        /// How many jobs there are.
        jobs: usize,
        /// The size of all values (bytes).
        bytes: u64,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Reads the numbers and values of all jobs that the engine keeps.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct ListJobs;
