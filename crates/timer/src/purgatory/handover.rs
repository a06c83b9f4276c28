//! [`Handover`]: a look that a thread leaves to the executor of the timer.
//!
//! A check that comes during an attempt leaves a note, and the owner looks again. If checks come as often as an attempt takes, the owner
//! would never return. So it looks again once, and hands a further look over. A look that is handed over is never lost: the executor runs it,
//! or the timer hands it over again later, or it takes place where the last reference to it is dropped.
//!
//! Ground rule: within a handover on a thread, this thread makes no other. An executor that runs jobs at once would otherwise use a stack
//! frame for each look.

use std::cell::Cell;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use super::delayed::Delayed;
use super::operation::Operation;
use super::panics::Panics;
use crate::sync::thread_local;
use crate::timer::{Core, Errand, Job, guarded};

thread_local! {
    /// Whether this thread is handing a look over.
    static HANDING: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is handing a look over. It then must not leave a look to others.
pub(super) fn is_within() -> bool {
    // A thread that is ending has no value any more, so it looks by itself.
    HANDING.try_with(Cell::get).unwrap_or(true)
}

fn within(act: impl FnOnce()) {
    let before = HANDING.try_with(|handing| handing.replace(true));
    guarded(act);
    if let Ok(before) = before {
        HANDING.with(|handing| handing.set(before));
    }
}

/// Hands a look over to the executor.
pub(super) fn hand_over<K, O>(delayed: &Arc<Delayed<K, O>>)
where
    K: Hash + Eq + Send + Sync + 'static,
    O: Operation,
{
    let handover = Handover { delayed: Arc::downgrade(delayed), core: Weak::clone(delayed.core()) };
    within(|| match delayed.core().upgrade() {
        Some(core) => core.execute(Job::errand(Box::new(handover))),
        // The timer is gone.
        None => drop(handover),
    });
}

/// The look; see the module. It does not keep the operation, which may end before.
struct Handover<K, O>
where
    K: Hash + Eq + Send + Sync + 'static,
    O: Operation,
{
    delayed: Weak<Delayed<K, O>>,
    core: Weak<Core>,
}

impl<K, O> Handover<K, O>
where
    K: Hash + Eq + Send + Sync + 'static,
    O: Operation,
{
    /// Looks, unless the look has taken place already. No caller waits for the result, so a panic is counted like that of a body.
    fn look(&mut self) {
        let delayed = std::mem::take(&mut self.delayed);
        let looked = guarded(|| {
            if let Some(delayed) = delayed.upgrade() {
                let mut panics = Panics::default();
                delayed.take_over(&mut panics);
                panics.resume();
            }
        });
        if !looked && let Some(core) = self.core.upgrade() {
            core.count_panicked();
        }
    }
}

impl<K, O> Errand for Handover<K, O>
where
    K: Hash + Eq + Send + Sync + 'static,
    O: Operation,
{
    fn run(mut self: Box<Self>) {
        self.look();
    }

    fn refused(self: Box<Self>) {
        if let Some(core) = self.core.upgrade() {
            core.hand_over_later(move || self.run());
        }
    }
}

impl<K, O> Drop for Handover<K, O>
where
    K: Hash + Eq + Send + Sync + 'static,
    O: Operation,
{
    fn drop(&mut self) {
        within(|| self.look());
    }
}
