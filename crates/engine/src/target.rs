//! [`TargetRecord`]: the target to which the tasks of a queue are pushed, as engine and store keep it.

use core::fmt;
use std::sync::Arc;

use crate::task::Retry;

/// The longest value of a target (bytes).
pub const TARGET_BYTES_MAX: usize = 65_536;
/// At most this many queues have a target, because all targets are in memory, in every checkpoint and in one answer.
pub const TARGETS_MAX: usize = 1_000;

/// The target of a queue: a value that its owner writes and reads, and a retry policy. Engine and store do not read the value. The `Debug`
/// text has only the length of the value, because the value may have secrets.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TargetRecord {
    /// The value, at most [`TARGET_BYTES_MAX`] bytes.
    pub value: Arc<[u8]>,
    /// How often and how soon a failed task is tried again, if neither the task nor the settings of its queue have a retry policy.
    /// `None`: as the default [`Retry`] says.
    pub retry: Option<Retry>,
}

impl fmt::Debug for TargetRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { value, retry } = self;
        let value = format_args!("{} bytes", value.len());
        f.debug_struct("TargetRecord").field("value", &value).field("retry", retry).finish()
    }
}
