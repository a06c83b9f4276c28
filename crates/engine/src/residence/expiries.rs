//! [`Expiries`]: the tasks in memory that expire, in the order of time.

use std::collections::BTreeMap;

use crate::slot::QueueNo;
use crate::time::{Now, Timestamp};

/// A task in memory that expires: when, its id, and its queue.
pub(crate) type Expiry = (Timestamp, u64, QueueNo);

/// Memory that one expiry takes (bytes), about.
pub(crate) const EXPIRY_BYTES: u64 = 48;

/// The tasks in memory that expire, whole or as stubs, and when each is due. Some of these tasks may have left memory. The due time is
/// exact for a stub only: a task that is held whole may have been moved.
#[derive(Debug, Default)]
pub(crate) struct Expiries(BTreeMap<Expiry, Timestamp>);

impl Expiries {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first_key_value().map(|(&(at, ..), _)| at)
    }

    /// A task in memory expires.
    pub(crate) fn watch(&mut self, expiry: Expiry, due_at: Timestamp) {
        self.0.insert(expiry, due_at);
    }

    /// Only the stub of a task stays in memory. The stub is found by its due time, so the due time is noted.
    pub(crate) fn set_due(&mut self, expiry: &Expiry, due_at: Timestamp) {
        if let Some(known) = self.0.get_mut(expiry) {
            *known = due_at;
        }
    }

    pub(crate) fn unwatch(&mut self, expiry: &Expiry) {
        self.0.remove(expiry);
    }

    /// Takes the next task that has expired by now, and when it was due.
    pub(crate) fn pop(&mut self, now: Now) -> Option<(Expiry, Timestamp)> {
        let first = self.0.first_entry().filter(|first| first.key().0 <= now.wall)?;
        Some(first.remove_entry())
    }
}
