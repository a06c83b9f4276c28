//! A job: a number and a value. The owner of the job writes the value and knows its meaning.

use crate::calls::Unavailable;
use std::sync::Arc;

/// The value of a job: bytes that its owner writes and reads. The engine does not read them.
pub type JobValue = Arc<[u8]>;

/// A change of one job. The engine keeps a job as a number and a value, and gives the value no meaning. A full disk refuses none of these
/// changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeJob {
    /// Keeps a new job. The answer has its number, which is higher than the numbers of all jobs before.
    Begin {
        /// The value, at most [`JOB_BYTES_MAX`].
        value: JobValue,
    },
    /// Gives a job another value. A job from another store, which is not kept yet, comes with its number.
    Keep {
        /// The number.
        id: u64,
        /// The new value, at most [`JOB_BYTES_MAX`].
        value: JobValue,
    },
    /// Forgets a job. The job with the highest number stays, because the next number is counted from it.
    Forget {
        /// The number.
        id: u64,
    },
}

/// The value of a job has at most this many bytes.
pub const JOB_BYTES_MAX: usize = 64 << 10;

/// Why a job was not changed. A refusal leaves no trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum JobError {
    /// No job has this number.
    #[error("no job has this number")]
    NotFound,
    /// The job has the highest number, and the next number is counted from it.
    #[error("the newest job cannot be forgotten")]
    Newest,
    /// The value is too long.
    #[error("the value of a job has at most {limit} bytes")]
    TooLong {
        /// Bytes that it may have.
        limit: usize,
    },
    /// The limit of jobs, or of the bytes of their values, is reached.
    #[error("there are {jobs} jobs with {bytes} bytes, and no more can be")]
    TooMany {
        /// How many there are.
        jobs: usize,
        /// Bytes of their values.
        bytes: u64,
    },
    /// An error that is not the caller's mistake.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
