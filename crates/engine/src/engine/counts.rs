//! Answers the calls for counts: of one queue, of a list of queues, and of the engine.

use std::collections::BTreeMap;

use super::Engine;
use crate::calls::{Answer, Command, GetQueue, GetStats, ListQueues, Stats, Unavailable};
use crate::time::Now;

impl Engine {
    /// Returns the counts of all events. The figures of all queues are in [`Stats::forgotten`].
    #[must_use]
    pub fn totals(&self) -> Stats {
        let queues = self.dispatch.queues();
        Stats {
            forgotten: queues.figures_of_all(),
            queues_appeared: queues.appeared(),
            ids_below: self.ledger.ids().below(),
            ..self.ledger.counters().totals()
        }
    }

    /// Counts on from the [`totals`](Self::totals) of an earlier engine of the same shard, so that no count falls while the process runs. To be
    /// called before the first event.
    pub fn count_on(&mut self, before: &Stats) {
        self.ledger.counters_mut().add(&before.totals());
        self.dispatch.queues_mut().count_on(&before.forgotten, before.queues_appeared);
    }

    /// Answers the calls for counts, once memory knows which tasks are due.
    pub(super) fn count(&mut self, now: Now) {
        if !self.residence.knows_what_is_due(now) {
            return;
        }
        for (call, command) in self.reads.take_counting() {
            let answer = match (&command, self.check_counts(now)) {
                // An operator reads the stats when something is wrong. So the stats are answered in every state, as exact as possible.
                (Command::Stats(GetStats(list)), _) => Answer::Stats(Ok(Box::new(self.stats(now, list)))),
                (command, Err(why)) => command.unavailable(why),
                (Command::Queue(GetQueue(name)), Ok(())) => {
                    let schedules = self.recurrence.of_queue(name);
                    let view = self.dispatch.queue_view(&self.residence, now, name, schedules);
                    Answer::Queue(Ok(Box::new(view)))
                }
                (Command::Queues(list), Ok(())) => Answer::Queues(Ok(self.dispatch.queues().page(now, list))),
                (other, Ok(())) => unreachable!("{other:?} does not ask for counts"),
            };
            self.ledger.answer(call, answer);
        }
    }

    fn check_counts(&self, now: Now) -> Result<(), Unavailable> {
        self.dispatch.doubt(&self.ledger)?;
        match self.ledger.refuses_changes().filter(|_| !self.residence.has_what_is_due(now)) {
            Some(why) => Err(Unavailable::ReadOnly { why }),
            None => Ok(()),
        }
    }

    fn stats(&self, now: Now, list: &ListQueues) -> Stats {
        let queues = self.dispatch.queues();
        let page = queues.page(now, list);
        // There may be as many namespaces as queues. So only the last page has `gone`.
        let gone = if page.next.is_none() { queues.gone().clone() } else { BTreeMap::new() };
        Stats {
            page,
            gone,
            forgotten: *queues.forgotten(),
            queues_appeared: queues.appeared(),
            room: self.ledger.room_left(),
            waiting: queues.waiting_workers(),
            read_only: self.ledger.has_failed(),
            schedules: self.recurrence.len(),
            instants_waiting: self.recurrence.waiting(),
            near_bytes: self.residence.bytes(),
            near_bytes_max: self.config.near_bytes_max,
            ids_below: self.ledger.ids().below(),
            ..self.ledger.counters().clone()
        }
    }
}
