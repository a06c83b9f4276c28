//! [`Line`]: ready tasks in the ready order, each whole or as a stub.

use std::collections::BTreeSet;

use super::ready::{ReadyKey, ReadyStub};
use crate::residence::Slot;
use crate::runs::{Ordered, Runs};
use crate::task::Task;
use crate::time::Timestamp;

/// The search for the oldest task looks at only this many priorities of a line, the most urgent ones. Without this bound, a queue with a
/// million tasks of a million priorities would hold up the calls that ask for counts.
const PRIORITIES_MAX: usize = 1_000;

/// A whole ready task, with its place in the ready order.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ReadyPlace {
    pub(crate) key: ReadyKey,
    pub(crate) slot: Slot,
}

impl ReadyPlace {
    pub(crate) fn of(task: &Task, slot: Slot) -> Self {
        Self { key: ReadyKey::of(task), slot }
    }
}

/// A task in a line, whole or as a stub.
#[derive(Copy, Clone, Debug)]
pub(crate) enum InLine {
    Whole(ReadyPlace),
    Stub(ReadyStub),
}

/// Ready tasks in the ready order.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The whole tasks.
    whole: BTreeSet<ReadyPlace>,
    /// The tasks that are stubs.
    stubs: Runs<ReadyStub>,
    /// How many tasks of the line have a more urgent priority than the default one.
    urgent: usize,
}

impl Line {
    pub(crate) fn whole(&self) -> &BTreeSet<ReadyPlace> {
        &self.whole
    }

    pub(crate) fn stubs(&self) -> &Runs<ReadyStub> {
        &self.stubs
    }

    pub(crate) fn urgent(&self) -> usize {
        self.urgent
    }

    /// Adds a whole task. Returns whether the line did not have the task before.
    pub(crate) fn insert(&mut self, place: ReadyPlace) -> bool {
        let joins = self.whole.insert(place);
        self.urgent += usize::from(joins && place.key.is_urgent());
        joins
    }

    /// Takes a whole task out. Returns whether the line had the task.
    pub(crate) fn remove(&mut self, place: &ReadyPlace) -> bool {
        let leaves = self.whole.remove(place);
        self.urgent -= usize::from(leaves && place.key.is_urgent());
        leaves
    }

    /// Adds a stub.
    pub(crate) fn insert_stub(&mut self, stub: ReadyStub) {
        self.urgent += usize::from(stub.key().is_urgent());
        self.stubs.insert(stub);
    }

    /// Takes a stub out. `None`: the line has no stub with this key.
    pub(crate) fn remove_stub(&mut self, key: ReadyKey) -> Option<ReadyStub> {
        let stub = self.stubs.remove(key)?;
        self.urgent -= usize::from(key.is_urgent());
        Some(stub)
    }

    pub(crate) fn len(&self) -> usize {
        self.whole.len() + self.stubs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key of the first task of the line.
    pub(crate) fn first(&self) -> Option<ReadyKey> {
        let whole = self.whole.first().map(|place| place.key);
        let stub = self.stubs.first().map(Ordered::key);
        whole.into_iter().chain(stub).min()
    }

    /// Returns the earliest `due_at` of the tasks of the [`PRIORITIES_MAX`] most urgent priorities in the line. The line is ordered by
    /// priority, and within one priority by `due_at`. So the search looks only at the first task of each of these priorities, in O(log n)
    /// for each. It passes over the stubs in `expired`, each of which counts as a priority that it has looked at.
    pub(crate) fn oldest_due(&self, expired: &BTreeSet<ReadyKey>) -> Option<Timestamp> {
        let mut next = self.first();
        let firsts = std::iter::from_fn(|| {
            let first = next?;
            let is_expired = expired.contains(&first);
            let from = if is_expired { first.next() } else { first.behind_priority() };
            next = from.and_then(|from| self.first_from(from));
            Some(Some(first.due_at).filter(|_| !is_expired))
        });
        firsts.take(PRIORITIES_MAX).flatten().min()
    }

    /// Returns the first key in the line that is `from` or behind `from`.
    fn first_from(&self, from: ReadyKey) -> Option<ReadyKey> {
        let whole =
            self.whole.range(ReadyPlace { key: from, slot: Slot::MIN }..).next().map(|place| place.key);
        let stub = self.stubs.first_from(from).map(Ordered::key);
        whole.into_iter().chain(stub).min()
    }

    /// Takes the first task out of the line.
    pub(crate) fn pop_first(&mut self) -> Option<InLine> {
        let stub = self.stubs.first().copied();
        match self.whole.first().copied() {
            Some(place) if stub.is_none_or(|stub| place.key < stub.key()) => {
                self.remove(&place);
                Some(InLine::Whole(place))
            }
            _ => self.remove_stub(stub?.key()).map(InLine::Stub),
        }
    }

    pub(crate) fn push(&mut self, one: InLine) {
        match one {
            InLine::Whole(place) => drop(self.insert(place)),
            InLine::Stub(stub) => self.insert_stub(stub),
        }
    }

    /// Returns the whole tasks before the first stub, or all whole tasks if the line has no stub.
    pub(crate) fn whole_in_front(&self) -> impl Iterator<Item = &ReadyPlace> {
        let end = self.stubs.first().map(Ordered::key);
        self.whole.iter().take_while(move |place| end.is_none_or(|end| place.key < end))
    }

    /// Whether the first `count` tasks of the line are whole, or all its tasks if there are fewer than `count`.
    pub(crate) fn has_whole(&self, count: usize) -> bool {
        self.stubs.first().is_none()
            || self.whole.len() >= count && self.whole_in_front().take(count).count() == count
    }

    /// Returns the stubs among the first `count` tasks of the line.
    pub(crate) fn stubs_among(&self, count: usize) -> impl Iterator<Item = &ReadyStub> {
        let mut whole = self.whole.iter().peekable();
        let mut left = count;
        self.stubs.iter().take_while(move |stub| {
            while left > 0 && whole.next_if(|place| place.key < stub.key()).is_some() {
                left -= 1;
            }
            let among = left > 0;
            left = left.saturating_sub(1);
            among
        })
    }
}
