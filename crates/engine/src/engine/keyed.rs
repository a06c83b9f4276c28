//! Commands on a key. A command runs once memory knows the key, or the store has said what it knows of the key.

use super::Engine;
use crate::calls::{Answer, Put};
use crate::input::CallId;
use crate::reads::{Identified, Keyed, Purpose};
use crate::schedule::occurrence_key;
use crate::task::Ended;
use crate::time::Now;

/// The call of an occurrence: no call asks for one, and none is answered.
const NO_CALL: CallId = CallId(0);

impl Engine {
    /// Runs a command on one key: at once if memory knows the key, else after a look-up.
    pub(super) fn keyed(&mut self, now: Now, call: CallId, command: Keyed) {
        let place = command.place();
        if !self.reads.is_waited_for(&place) && self.residence.by_key(&place.0, &place.1).is_some() {
            self.run(now, call, command, None);
        } else {
            self.reads.wait_for_key(call, command);
        }
    }

    /// Runs a command on a key. The key is in memory, or the store was asked for it. Then `gone` is the end of its task, if the store
    /// knows one.
    pub(super) fn run(&mut self, now: Now, call: CallId, command: Keyed, gone: Option<&Ended>) {
        let mut tasks = self.tasks(now);
        let answer = match command {
            Keyed::Put(named) => {
                if let Some(put) = tasks.put(call, named, gone) {
                    self.put(now, call, put);
                }
                return;
            }
            Keyed::Get(get) => Answer::Get(tasks.get(&get, gone)),
            Keyed::Patch(patch) => Answer::Patch(tasks.patch(patch, gone)),
            Keyed::Cancel(cancel) => Answer::Cancel(tasks.cancel(&cancel, gone)),
            Keyed::ByKey(by_key) => Answer::ByKey(tasks.by_key(&by_key, gone)),
            Keyed::Identified { command, .. } => return self.identified(now, call, command, true),
            Keyed::ImportSchedule { import, .. } => Answer::ImportSchedule(tasks.import_schedule(&import)),
            Keyed::Occurrence { schedule, at, .. } => return tasks.occurrence(&schedule, at),
        };
        self.ledger.answer(call, answer);
    }

    pub(super) fn put(&mut self, now: Now, call: CallId, put: Put) {
        match self.tasks(now).name_put(put) {
            (command, true) => self.run(now, call, command, None),
            (command, false) => self.keyed(now, call, command),
        }
    }

    /// Runs a command on the task of an id. A dead task lives again only if no other task has its key by now. `knows_key` says that memory
    /// knows the key, or that the key is known to lead to no task.
    pub(super) fn identified(&mut self, now: Now, call: CallId, command: Identified, knows_key: bool) {
        let Some(slot) = self.residence.by_id(command.id()) else {
            // The task is not in memory, or left it while its key was looked up.
            return self.reads.want(Purpose::Id(call, command));
        };
        let entry = self.residence.get(slot);
        if !knows_key && command.revives() && entry.is_dead() && command.means(&entry.task) {
            let place = (entry.task.queue.clone(), entry.task.key.clone());
            return self.keyed(now, call, Keyed::Identified { command, place });
        }
        self.tasks(now).run_identified(call, &command, slot);
    }

    /// Looks at every schedule that changed in this step, and makes the tasks of its instants.
    pub(super) fn make_occurrences(&mut self, now: Now) {
        loop {
            // While the engine stops, no schedule goes on. But an instant that the input brought becomes a task.
            self.make_waiting(now);
            if !self.recurrence.go_on(&self.ledger) {
                return;
            }
        }
    }

    /// Makes tasks of the instants that wait for one. Instants that have come by now go before the input of this step, as everything due
    /// does.
    pub(super) fn make_waiting(&mut self, now: Now) {
        while let Some((schedule, at)) = self.recurrence.pop_to_make() {
            let key = occurrence_key(&schedule.1, at);
            self.keyed(now, NO_CALL, Keyed::Occurrence { schedule, key, at });
        }
    }
}
