//! Runs a body: the last step of an entry, on the thread that the executor chose.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::entry::AnyEntry;
use crate::Monotonic;

/// Runs the body of a due entry, unless the entry was cancelled, moved or given back meanwhile. A panic of the body is caught and counted.
pub(super) fn fire(entry: &Arc<AnyEntry>) {
    let Some(deadline) = entry.word.begin() else { return };
    let home = &entry.home;
    let common = &home.common;
    home.count_fired();
    let periodic = entry.body.is_periodic();
    if !periodic {
        common.limit.release();
    }
    let started = if periodic || common.lateness.is_some() { common.now() } else { deadline };
    if let Some(lateness) = &common.lateness {
        lateness.record(started.saturating_since(deadline));
    }
    if !guarded(|| entry.body.run(deadline, started)) {
        home.count_panicked();
    }
    if periodic {
        if again(entry) {
            return;
        }
        common.limit.release();
        // The captured values are dropped here, which runs user code, too.
        guarded(|| entry.body.give_up());
    }
    entry.word.end();
}

/// Files a periodic entry for its next run, if it has one.
fn again(entry: &Arc<AnyEntry>) -> bool {
    let ended: Monotonic = entry.home.common.now();
    entry.body.next(ended).is_some_and(|deadline| entry.home.again(entry, deadline))
}

/// Calls user code. False if it panicked. No panic passes through, not even one from a panic payload that panics when it is dropped.
pub(crate) fn guarded(call: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(()) => true,
        Err(payload) => {
            if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                std::mem::forget(another);
            }
            false
        }
    }
}
