//! [`Attempts`]: the last attempts of one target, for people that look for the cause of a failure.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tickwheel_queue::{Key, Timestamp};

/// The number of attempts that are kept. They are in memory only.
const KEPT: usize = 1_000;

/// One attempt to send a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AttemptRecord {
    /// The key of the task.
    pub key: Key,
    /// The id of the task.
    pub id: u64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// When the attempt began.
    pub at: Timestamp,
    /// How long the attempt took (ms).
    pub took_ms: u64,
    /// The word of the outcome, see [`Outcome::name`](crate::Outcome::name).
    pub outcome: &'static str,
    /// The status of HTTP, if there was an answer.
    pub status: Option<u16>,
    /// The reason of a failure.
    pub reason: Option<std::sync::Arc<str>>,
    /// The first bytes of the answer.
    pub answer: Vec<u8>,
}

/// The last 1,000 attempts of one target.
#[derive(Debug, Default)]
pub struct Attempts {
    last: Mutex<VecDeque<AttemptRecord>>,
}

impl Attempts {
    /// Adds an attempt. The oldest one is forgotten if there are too many.
    pub(crate) fn add(&self, attempt: AttemptRecord) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= KEPT {
            last.pop_front();
        }
        last.push_back(attempt);
    }

    /// Returns at most `limit` attempts, the newest first.
    #[must_use]
    pub fn newest(&self, limit: usize) -> Vec<AttemptRecord> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().rev().take(limit).cloned().collect()
    }

    /// Returns the last attempt that was made for a task with this key.
    #[must_use]
    pub fn last_of(&self, key: &Key) -> Option<AttemptRecord> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().rev().find(|attempt| attempt.key == *key).cloned()
    }
}
