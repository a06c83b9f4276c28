//! [`Panics`]: catches and counts the panics of the program's own code on the threads of a queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The panics of the program's own code: of a listener to notices, and of wakers. A queue has one counter, and all clones are that counter.
///
/// The thread of a queue serves all callers of the queue, so one caller's panic must not end it. No other memory depends on the counter, so
/// `Relaxed` is enough.
#[derive(Clone, Debug, Default)]
pub(crate) struct Panics(Arc<AtomicU64>);

impl Panics {
    /// Calls code of the program, and catches and counts its panic. The panic hook has reported the panic by then.
    pub(crate) fn catch(&self, call: impl FnOnce()) {
        let Err(payload) = catch_unwind(AssertUnwindSafe(call)) else { return };
        self.0.fetch_add(1, Ordering::Relaxed);
        // The payload of a panic is a value of the program, and its drop may panic, too.
        if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(another);
        }
    }

    /// Returns the number of panics that were caught.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
