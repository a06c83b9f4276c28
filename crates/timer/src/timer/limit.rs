//! [`Limit`]: how many entries a timer holds at most.
//!
//! Ground rule: `held` is raised by a compare-and-swap that never takes it beyond `most`, and lowered once for each
//! entry that ends. Only the alarms of a delay queue take it beyond. It is exact. It is one cache line that all
//! threads share; a timer without a limit does not touch it.

use std::num::NonZeroUsize;

use crate::sync::atomic::{AtomicUsize, Ordering};

/// See the module.
pub(super) struct Limit {
    most: Option<NonZeroUsize>,
    held: AtomicUsize,
}

impl Limit {
    pub(super) const fn new(most: Option<NonZeroUsize>) -> Self {
        Self { most, held: AtomicUsize::new(0) }
    }

    /// Takes a place for an entry; false if there is none.
    #[inline]
    pub(super) fn take(&self) -> bool {
        let Some(most) = self.most else { return true };
        self.held
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |held| (held < most.get()).then_some(held + 1))
            .is_ok()
    }

    /// Takes a place, even if none is left.
    pub(super) fn take_anyway(&self) {
        if self.most.is_some() {
            self.held.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Gives the place of an entry back.
    #[inline]
    pub(super) fn release(&self) {
        if self.most.is_some() {
            let before = self.held.fetch_sub(1, Ordering::AcqRel);
            debug_assert!(before > 0, "a place is given back that was not taken");
        }
    }
}
