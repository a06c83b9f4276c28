//! [`Expiries`]: the tasks in memory that expire, in the order in which they expire.

use std::collections::BTreeMap;

use crate::dispatch::ReadyKey;
use crate::residence::QueueNo;
use crate::time::{Now, Timestamp};

/// A task in memory that expires: the instant at which it expires, its id, and the number of its queue.
pub(crate) type Expiry = (Timestamp, u64, QueueNo);

/// Memory that one expiry takes (bytes), about.
pub(crate) const EXPIRY_BYTES: u64 = 72;

/// The tasks in memory that expire, whole or as stubs, each with its place in the ready order. A task whose stub was dropped may also be in
/// the list. The place is exact for a stub only: a whole task may have got another one since it was added.
#[derive(Debug, Default)]
pub(crate) struct Expiries(BTreeMap<Expiry, ReadyKey>);

impl Expiries {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first_key_value().map(|(&(at, ..), _)| at)
    }

    /// Adds a task in memory that expires, with its place in the ready order.
    pub(crate) fn watch(&mut self, expiry: Expiry, key: ReadyKey) {
        self.0.insert(expiry, key);
    }

    /// Notes the present place of a task in the ready order, because only its stub stays in memory. When the stub expires, its due time tells
    /// whether the stub is in a line.
    pub(crate) fn set_key(&mut self, expiry: &Expiry, key: ReadyKey) {
        if let Some(known) = self.0.get_mut(expiry) {
            *known = key;
        }
    }

    pub(crate) fn unwatch(&mut self, expiry: &Expiry) {
        self.0.remove(expiry);
    }

    /// Takes out the next task that has expired by now, with its place in the ready order.
    pub(crate) fn pop(&mut self, now: Now) -> Option<(Expiry, ReadyKey)> {
        let first = self.0.first_entry().filter(|first| first.key().0 <= now.falls_due())?;
        Some(first.remove_entry())
    }
}
