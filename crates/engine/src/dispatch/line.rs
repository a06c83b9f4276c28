//! A line of ready tasks, held whole or as stubs, in the ready order.

use std::collections::BTreeSet;

use super::ready::{ReadyKey, ReadyStub};
use crate::runs::{Ordered, Runs};
use crate::slot::Slot;
use crate::task::Task;
use crate::time::Timestamp;

/// The search for the oldest task looks at this many priorities of a line at most, the most urgent ones. So a queue with a million tasks of
/// a million priorities does not hold up the callers that count.
const PRIORITIES_MAX: usize = 1_000;

/// A ready task that is held whole, in the ready order.
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

/// A task in a line.
#[derive(Copy, Clone, Debug)]
pub(crate) enum InLine {
    Whole(ReadyPlace),
    Stub(ReadyStub),
}

/// Ready tasks in their order.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The tasks that are held whole.
    whole: BTreeSet<ReadyPlace>,
    /// The tasks that are held as stubs.
    stubs: Runs<ReadyStub>,
    /// How many tasks of the line are urgent.
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

    /// A task that is held whole joins. Returns whether it was not there before.
    pub(crate) fn insert(&mut self, place: ReadyPlace) -> bool {
        let joins = self.whole.insert(place);
        self.urgent += usize::from(joins && place.key.is_urgent());
        joins
    }

    /// A task that is held whole leaves. Returns whether it was there.
    pub(crate) fn remove(&mut self, place: &ReadyPlace) -> bool {
        let leaves = self.whole.remove(place);
        self.urgent -= usize::from(leaves && place.key.is_urgent());
        leaves
    }

    /// A stub joins.
    pub(crate) fn insert_stub(&mut self, stub: ReadyStub) {
        self.urgent += usize::from(stub.key().is_urgent());
        self.stubs.insert(stub);
    }

    /// A stub leaves.
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

    /// The first in the order.
    pub(crate) fn first(&self) -> Option<ReadyKey> {
        let whole = self.whole.first().map(|place| place.key);
        let stub = self.stubs.first().map(Ordered::key);
        whole.into_iter().chain(stub).min()
    }

    /// When the oldest task of the line was due. The line is ordered by priority, and within one priority by `due_at`. So this looks at the
    /// first task of each priority, for [`PRIORITIES_MAX`] priorities at most, in O(log n) for each.
    pub(crate) fn oldest_due(&self) -> Option<Timestamp> {
        let mut next = self.first();
        let firsts = std::iter::from_fn(|| {
            let first = next?;
            next = first.behind_priority().and_then(|from| self.first_from(from));
            Some(first.due_at)
        });
        firsts.take(PRIORITIES_MAX).min()
    }

    /// The first in the order at this place or behind it.
    fn first_from(&self, from: ReadyKey) -> Option<ReadyKey> {
        let whole =
            self.whole.range(ReadyPlace { key: from, slot: Slot::MIN }..).next().map(|place| place.key);
        let stub = self.stubs.first_from(from).map(Ordered::key);
        whole.into_iter().chain(stub).min()
    }

    /// Takes the first task out.
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

    /// The tasks that are held whole and stand before the first stub.
    pub(crate) fn whole_in_front(&self) -> impl Iterator<Item = &ReadyPlace> {
        let end = self.stubs.first().map(Ordered::key);
        self.whole.iter().take_while(move |place| end.is_none_or(|end| place.key < end))
    }

    /// Whether the first `count` tasks are held whole, or all if there are fewer.
    pub(crate) fn has_whole(&self, count: usize) -> bool {
        self.stubs.first().is_none()
            || self.whole.len() >= count && self.whole_in_front().take(count).count() == count
    }

    /// Stubs among the first `count`.
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
