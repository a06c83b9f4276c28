//! [`Expiries`]: the tasks in memory that expire, in the order in which they expire.

use std::collections::BTreeMap;

use crate::slot::QueueNo;
use crate::time::{Now, Timestamp};

/// A task in memory that expires: the instant at which it expires, its id, and the number of its queue.
pub(crate) type Expiry = (Timestamp, u64, QueueNo);

/// Memory that one expiry takes (bytes), about.
pub(crate) const EXPIRY_BYTES: u64 = 48;

/// The tasks in memory that expire, whole or as stubs, each with its due time. A task whose stub was dropped may also be in the list. The
/// due time is exact for a stub only: a whole task may have got another due time since it was added.
#[derive(Debug, Default)]
pub(crate) struct Expiries(BTreeMap<Expiry, Timestamp>);

impl Expiries {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first_key_value().map(|(&(at, ..), _)| at)
    }

    /// Adds a task in memory that expires, with its due time.
    pub(crate) fn watch(&mut self, expiry: Expiry, due_at: Timestamp) {
        self.0.insert(expiry, due_at);
    }

    /// Notes the present due time of a task, because only its stub stays in memory. When the stub expires, the due time tells whether the
    /// stub is in a line.
    pub(crate) fn set_due(&mut self, expiry: &Expiry, due_at: Timestamp) {
        if let Some(known) = self.0.get_mut(expiry) {
            *known = due_at;
        }
    }

    pub(crate) fn unwatch(&mut self, expiry: &Expiry) {
        self.0.remove(expiry);
    }

    /// Takes out the next task that has expired by now, with its due time.
    pub(crate) fn pop(&mut self, now: Now) -> Option<(Expiry, Timestamp)> {
        let first = self.0.first_entry().filter(|first| first.key().0 <= now.falls_due())?;
        Some(first.remove_entry())
    }
}
