//! Eviction: tasks leave memory or shrink to stubs, once they are durable and nothing needs their whole records.

use std::sync::Arc;

use super::Tasks;
use crate::calls::State;
use crate::residence::{At, Slot};
use crate::seam::DueKey;
use crate::task::Task;
use crate::time::Timestamp;

/// The form to which a durable entry may shrink: whole in memory, a stub in memory, or out of memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Form {
    Whole,
    Stub,
    Out,
}

impl Tasks<'_> {
    /// Takes in that a change of this entry is durable. If no later change waits for a commit, evicts the entry where that is possible.
    pub(crate) fn made_durable(&mut self, slot: Slot) {
        if self.residence.made_durable(self.ledger, slot) {
            self.evict(slot);
        }
    }

    /// Evicts the pinned entries whose reads are all answered, if nothing else needs the entries.
    pub(crate) fn evict_unpinned(&mut self) {
        while let Some(slot) = self.residence.pop_unpinned() {
            let form = self.form_for(slot);
            self.take_form(slot, form);
        }
    }

    /// Evicts a durable entry that nothing needs, or shrinks it to a stub. While reads are under way, pins the entry instead, because a
    /// read may return an older record of the task.
    pub(crate) fn evict(&mut self, slot: Slot) {
        // An earlier command may have evicted or changed the entry.
        if !self.residence.has(slot) || self.residence.get(slot).dirty.is_some() {
            return;
        }
        let form = self.form_for(slot);
        if form != Form::Whole && self.residence.has_reads() {
            return self.residence.pin(slot);
        }
        self.take_form(slot, form);
    }

    fn form_for(&mut self, slot: Slot) -> Form {
        let place = DueKey::of(self.residence.task(slot));
        if matches!(self.residence.get(slot).at, At::Far) && self.residence.keeps(self.now, place) {
            // Time has passed since the entry was placed, and its due time is inside the horizon now.
            self.place(slot);
        }
        let entry = self.residence.get(slot);
        match &entry.at {
            At::Far | At::Ended(_) => Form::Out,
            At::Waiting(_) | At::Rewound if !self.residence.keeps(self.now, place) => Form::Out,
            At::Waiting(_) | At::Rewound if entry.bulky || self.residence.sheds() => Form::Stub,
            At::Ready { .. }
                if (entry.bulky || self.residence.sheds())
                    && self.dispatch.is_behind_head(self.residence, slot, self.now) =>
            {
                Form::Stub
            }
            At::Waiting(_) | At::Rewound | At::Ready { .. } | At::Leased(_) => Form::Whole,
        }
    }

    fn take_form(&mut self, slot: Slot, form: Form) {
        if form == Form::Whole {
            return;
        }
        let task = Arc::clone(self.residence.task(slot));
        if let (Form::Stub, &At::Ready { since }) = (form, &self.residence.get(slot).at) {
            return self.shrink(slot, &task, since);
        }
        // A task that leaves memory has to be loaded again before it is due, so the window of loaded tasks has to end before this task. A
        // dead task need not be loaded again once the engine takes no changes, because it can no longer be forgotten.
        let state = self.residence.get(slot).state();
        let is_missed = state.is_some_and(|state| state != State::Dead || self.ledger.takes_changes());
        self.unplace(slot);
        self.residence.remove(slot);
        match form {
            Form::Stub => {
                self.watch_shrunk(&task);
                self.add_waiting_stub(&task);
            }
            Form::Out if is_missed => {
                self.unwatch_expiry(&task);
                self.residence.left(DueKey::of(&task));
            }
            Form::Out | Form::Whole => {}
        }
    }

    /// Replaces a ready task by its stub, in the same place of the line or of the parked tasks.
    fn shrink(&mut self, slot: Slot, task: &Task, since: Timestamp) {
        self.residence.stub_joined();
        self.dispatch.shrink(self.ledger, task, slot, since);
        self.watch_shrunk(task);
        self.residence.remove(slot);
    }

    /// Evicts some entries and drops some stubs if too much memory is in use. One call does a bounded amount of work.
    pub(crate) fn shed(&mut self) {
        for _ in 0..self.config.bounds.shed_visits {
            let Some(slot) = self.residence.next_visited() else { break };
            self.visit(slot);
        }
        self.residence.drop_last_stubs(self.now);
    }

    fn visit(&mut self, slot: Slot) {
        if !self.residence.has(slot) {
            return;
        }
        let entry = self.residence.get(slot);
        let slot = match &entry.at {
            At::Waiting(_) | At::Rewound => Some(slot),
            // For a ready entry, the last entry of its line is evicted instead, because the last one is needed latest. A parked entry is
            // evicted itself.
            At::Ready { .. } => self.dispatch.last_of_line(&entry.task, slot),
            At::Far | At::Leased(_) | At::Ended(_) => None,
        };
        if let Some(slot) = slot
            && self.residence.get(slot).pinned.is_none()
        {
            self.evict(slot);
        }
    }
}
