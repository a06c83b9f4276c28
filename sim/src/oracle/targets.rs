//! Targets of queues: each queue has the target that it was given last, until it loses the target or is deleted. The oracle of targets is
//! made from the answers to calls; like the rest of the oracle it knows nothing of the product.
//!
//! One client makes all calls, one at a time. After a crash that leaves a change in doubt, it reads all targets before it goes on.

use std::collections::BTreeMap;

use super::Violation;

/// A change of a queue that may touch its target. Queues and targets are numbers here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The queue with the first number has the target with the second number.
    Set(u64, u64),
    /// The queue has no target any more: the target was removed, or the queue was deleted.
    Remove(u64),
    /// Something else of a queue has changed: its settings, its pause, its drain.
    Other,
}

/// Everything that the oracle knows of the targets.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    by_queue: BTreeMap<u64, u64>,
    /// A change that may have happened or not.
    open: Option<Change>,
}

impl Targets {
    /// Whether it is unknown if the last change happened. If so, the client has to read all targets first.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.open.is_some()
    }

    /// The target of this queue; `None`: it has none.
    #[must_use]
    pub fn of(&self, queue: u64) -> Option<u64> {
        self.by_queue.get(&queue).copied()
    }

    /// A change is under way.
    pub fn called(&mut self, change: Change) {
        self.open = Some(change);
    }

    /// The change was refused and has not happened.
    pub fn refused(&mut self) {
        self.open = None;
    }

    /// The change has happened.
    pub fn done(&mut self) {
        match self.open.take() {
            Some(Change::Set(queue, target)) => drop(self.by_queue.insert(queue, target)),
            Some(Change::Remove(queue)) => drop(self.by_queue.remove(&queue)),
            Some(Change::Other) | None => {}
        }
    }

    /// All targets were read: `shown` has them by queue, in the order of the answer. No change may be under way, except one that a crash
    /// left in doubt.
    ///
    /// # Errors
    /// Other targets should have been shown, or in another order.
    pub fn seen(&mut self, shown: &[(u64, u64)]) -> Result<(), Violation> {
        let is_shown = |known: &BTreeMap<u64, u64>| {
            known.iter().map(|(&queue, &target)| (queue, target)).eq(shown.iter().copied())
        };
        let before = self.clone();
        if is_shown(&self.by_queue) {
            self.open = None;
            return Ok(());
        }
        self.done();
        if is_shown(&self.by_queue) {
            return Ok(());
        }
        let what = format!("targets: {shown:?} are shown, of {before:?}");
        Err(Violation { promise: "P1", what, story: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queue 1 got target 5; then this change was called, and a crash came.
    fn after(change: Change) -> Targets {
        let mut targets = Targets::default();
        targets.called(Change::Set(1, 5));
        targets.done();
        targets.called(change);
        targets
    }

    #[test]
    fn a_crash_leaves_a_change_in_doubt_and_a_look_ends_that() {
        for (change, happened) in [
            (Change::Set(1, 6), vec![(1, 6)]),
            (Change::Set(2, 6), vec![(1, 5), (2, 6)]),
            (Change::Remove(1), vec![]),
            (Change::Other, vec![(1, 5)]),
        ] {
            for shown in [happened, vec![(1, 5)]] {
                let mut targets = after(change);
                targets.seen(&shown).expect("either may stand");
                assert!(!targets.is_in_doubt());
                assert_eq!(targets.seen(&shown), Ok(()), "{change:?}");
                targets.seen(&[(1, 7)]).expect_err("no call gave it this target");
            }
        }
        let mut targets = after(Change::Set(2, 6));
        targets.done();
        targets.seen(&[(2, 6), (1, 5)]).expect_err("not in the order of the queues");
        targets.clone().seen(&[(1, 5)]).expect_err("one was lost");
    }
}
