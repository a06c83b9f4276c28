//! Runs commands on a key. A command runs once the key is in memory, or once the store has answered what it has on the key.

use super::Engine;
use crate::calls::{Answer, Put};
use crate::input::{CallId, Effect};
use crate::reads::{Identified, Keyed, Purpose};
use crate::schedule::occurrence_key;
use crate::task::Ended;
use crate::time::Now;

/// The call id for the tasks that schedules make. No call asks for such a task, and no call is answered.
const NO_CALL: CallId = CallId(0);

impl Engine {
    /// Runs a command on one key: at once if memory has the key and no earlier command waits for it, else after a look-up.
    pub(super) fn keyed(&mut self, now: Now, call: CallId, command: Keyed) {
        let place = command.place();
        // Most keys of puts are not in memory. So memory is asked first, which costs less.
        if self.residence.by_key(&place.0, &place.1).is_some() && !self.reads.is_waited_for(&place) {
            self.run(now, call, command, None);
        } else {
            self.reads.wait_for_key(place, call, command);
        }
    }

    /// Runs a command on a key that is in memory, was looked up in the store, or needs no look-up. `gone`: how the last task of the key
    /// ended, if the look-up found that.
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
            Keyed::TakeRow(take) => Answer::TakeRow(tasks.take_row(take)),
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

    /// Runs a command on the task with an id, if needed after a look-up. A command that makes a dead task live again first needs the key of
    /// the task, because no other live task may have this key. `knows_key`: memory has the key, or a look-up found no live task on the key.
    pub(super) fn identified(&mut self, now: Now, call: CallId, command: Identified, knows_key: bool) {
        let Some(slot) = self.residence.by_id(command.id()) else {
            // The task is not whole in memory, or was evicted while its key was looked up.
            return self.reads.want(Purpose::Id(call, command));
        };
        let entry = self.residence.get(slot);
        if !knows_key && command.revives() && entry.is_dead() && command.means(&entry.task) {
            let place = (entry.task.queue.clone(), entry.task.key.clone());
            return self.keyed(now, call, Keyed::Identified { command, place });
        }
        self.tasks(now).run_identified(call, &command, slot);
    }

    /// Ends the search for live tasks for the schedules whose queues have no live task. This takes no question to the store.
    pub(super) fn count_empty_queues(&mut self) {
        while let Some(queue) = self.recurrence.next_uncounted_queue(&self.ledger) {
            if self.dispatch.live(&queue) == 0 {
                self.recurrence.queue_is_empty(&mut self.ledger, &queue);
            }
        }
    }

    /// Asks the store for the next page of a search for live tasks, if a schedule has to know the live tasks of its name.
    pub(super) fn search_live(&mut self, now: Now, out: &mut Vec<Effect>) {
        if let Some(request) = self.recurrence.search_live(&mut self.ledger, now, out) {
            self.residence.begin_read(request);
        }
    }

    /// Looks at every schedule that changed in this step, and makes the tasks of the instants that have come.
    pub(super) fn make_occurrences(&mut self, now: Now) {
        loop {
            // An engine that is stopping looks at no schedule. But the instants that already wait for their tasks still get them.
            self.make_waiting(now);
            if !self.recurrence.go_on(&self.ledger) {
                return;
            }
        }
    }

    /// Makes the tasks of the instants that wait for a task: at once, or after a look-up of the task's key. [`step`](Self::step) calls this
    /// function before it applies its input, too, so that instants that have come by then get their tasks first.
    pub(super) fn make_waiting(&mut self, now: Now) {
        while let Some((schedule, at)) = self.recurrence.pop_to_make() {
            let key = occurrence_key(&schedule.1, at);
            self.keyed(now, NO_CALL, Keyed::Occurrence { schedule, key, at });
        }
    }
}
