//! [`BridgeFigures`]: the counts of a bridge.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The counts of a bridge since it was made. The bridge writes them, and others read them.
#[derive(Debug, Default)]
pub struct BridgeFigures {
    counts: [AtomicU64; COUNTERS],
    trouble: Mutex<Option<Arc<str>>>,
}

/// A counter of a bridge.
#[derive(Copy, Clone)]
pub(super) enum Counter {
    Received,
    Stored,
    Cancelled,
    Refused,
    Redelivered,
    Repeatable,
    Waits,
    Sessions,
}

const COUNTERS: usize = 8;

/// The counts of a bridge at one instant.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct BridgeCounts {
    /// Messages that the broker delivered.
    pub received: u64,
    /// Messages that are durable tasks, and that the broker may forget.
    pub stored: u64,
    /// Cancellations that were carried out. A cancellation of a task that is not there counts, too.
    pub cancelled: u64,
    /// Messages that went to the queue for refused messages.
    pub refused: u64,
    /// Messages that the broker delivered again, after a connection was lost.
    pub redelivered: u64,
    /// Messages without a key that the broker delivered again. Each may have become a second task.
    pub redelivered_without_key: u64,
    /// How often a message had to wait, because the store could not take it at once.
    pub waits: u64,
    /// Connections on which the bridge has worked.
    pub sessions: u64,
}

impl BridgeFigures {
    pub(super) fn count(&self, counter: Counter) {
        self.counts[counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Takes in why the bridge does not work now; `None`: it works.
    pub(super) fn set_trouble(&self, reason: Option<Arc<str>>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// Returns why the bridge does not work now, or why the store takes no message; `None`: nothing is wrong.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> BridgeCounts {
        let of = |counter: Counter| self.counts[counter as usize].load(Ordering::Relaxed);
        BridgeCounts {
            received: of(Counter::Received),
            stored: of(Counter::Stored),
            cancelled: of(Counter::Cancelled),
            refused: of(Counter::Refused),
            redelivered: of(Counter::Redelivered),
            redelivered_without_key: of(Counter::Repeatable),
            waits: of(Counter::Waits),
            sessions: of(Counter::Sessions),
        }
    }
}
