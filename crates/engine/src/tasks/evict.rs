//! Tasks leave memory, or leave a stub there, once they are durable and nothing needs their records.

use std::sync::Arc;

use super::Tasks;
use crate::calls::State;
use crate::residence::At;
use crate::seam::DueKey;
use crate::slot::Slot;
use crate::task::Task;
use crate::time::Timestamp;

/// The form in which a durable entry may rest: whole, as a stub, or out of memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Form {
    Whole,
    Stub,
    Out,
}

impl Tasks<'_> {
    /// An effect of this entry is durable. If it was the last one, the entry may leave memory.
    pub(crate) fn made_durable(&mut self, slot: Slot) {
        if self.residence.made_durable(self.ledger, slot) {
            self.evict(slot);
        }
    }

    /// Evicts the entries that no read under way can contradict any more, if nothing else needs them.
    pub(crate) fn evict_unpinned(&mut self) {
        while let Some(slot) = self.residence.pop_unpinned() {
            let form = self.form_for(slot);
            self.take_form(slot, form);
        }
    }

    /// A durable entry that nothing needs leaves memory, or leaves a stub there, once no read under way can contradict it.
    pub(crate) fn evict(&mut self, slot: Slot) {
        // A command may have evicted the entry already.
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
            // The horizon has come nearer since the entry was placed.
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
        // A dead task is not missed if the engine takes no changes any more: then it cannot be forgotten.
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

    /// Replaces a ready task by its stub, in the same place in the line.
    fn shrink(&mut self, slot: Slot, task: &Task, since: Timestamp) {
        self.residence.stub_joined();
        self.dispatch.shrink(self.ledger, task, slot, since);
        self.watch_shrunk(task);
        self.residence.remove(slot);
    }

    /// Gives memory back, a bounded step at a time, if too much of it is in use.
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
            // The line is always shed from its end, no matter which of its entries is met.
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
