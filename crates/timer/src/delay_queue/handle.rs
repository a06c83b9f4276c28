//! [`DelayHandle`]: the claim on one element of a delay queue.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::Monotonic;

/// A claim on one element of a [`DelayQueue`](crate::DelayQueue), to remove it, to reschedule it, or to ask for its deadline.
///
/// A handle becomes *stale* when its element leaves the queue in any way. A stale handle finds nothing, for ever: elements are numbered,
/// and no number is used twice. A reschedule does not change the handle.
///
/// A handle is valid only in the queue that made it. Another queue may have an element with the same number and would find that element. If
/// two handles are from one queue, the smaller one is of the earlier push.
///
/// A handle is 16 bytes and `Copy`.
#[derive(Clone, Copy, Debug)]
pub struct DelayHandle {
    pub(super) number: u64,
    /// The deadline at the time of the push. It saves a look-up for elements that were never rescheduled. It does not identify the element.
    pub(super) deadline: Monotonic,
}

impl PartialEq for DelayHandle {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for DelayHandle {}

impl PartialOrd for DelayHandle {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DelayHandle {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl Hash for DelayHandle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}
