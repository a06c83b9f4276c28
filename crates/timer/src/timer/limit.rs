//! [`Limit`]: the largest number of entries in a timer.
//!
//! Ground rule: `held` is raised by a compare-and-swap that never raises it above `most`, and lowered once for each entry that ends. Only
//! the alarms of delay queues may raise it above `most`. All threads share its cache line; a timer without a limit does not touch it.

use std::num::NonZeroUsize;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// The limit and the count; see the module.
pub(super) struct Limit {
    most: Option<NonZeroUsize>,
    held: AtomicUsize,
}

impl Limit {
    pub(super) const fn new(most: Option<NonZeroUsize>) -> Self {
        Self { most, held: AtomicUsize::new(0) }
    }

    /// Counts one more entry; false if the limit is reached.
    #[inline]
    pub(super) fn take(&self) -> bool {
        let Some(most) = self.most else { return true };
        self.held
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| (held < most.get()).then_some(held + 1))
            .is_ok()
    }

    /// Counts one more entry, also above the limit.
    pub(super) fn take_anyway(&self) {
        if self.most.is_some() {
            self.held.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Counts one entry less.
    #[inline]
    pub(super) fn release(&self) {
        if self.most.is_some() {
            let before = self.held.fetch_sub(1, Ordering::AcqRel);
            debug_assert!(before > 0, "a place is given back that was not taken");
        }
    }
}
