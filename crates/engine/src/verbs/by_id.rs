//! Calls on a task that is known by its id, in any queue and with any key.

use std::sync::Arc;

use crate::calls::{Act, Acted, Answer, ById, ByIdError, State, Unavailable};
use crate::dispatch::Taking;
use crate::input::CallId;
use crate::ledger::task_bytes;
use crate::reads::Keyed;
use crate::residence::At;
use crate::seam::Found;
use crate::slot::Slot;
use crate::task::{Outcome, Redriven, Task};
use crate::tasks::Tasks;
use crate::time::Now;

impl ById {
    /// Whether this task is the one that is meant.
    fn means(&self, task: &Task) -> bool {
        let within = self.within.as_deref();
        task.id == self.id
            && within.is_none_or(|within| task.queue.as_str().starts_with(within))
            && self.if_version.is_none_or(|version| task.version == version)
    }
}

impl Tasks<'_> {
    /// The store answered with the task.
    pub(crate) fn by_id_found(&mut self, now: Now, call: CallId, by_id: ById, found: Found) -> Option<Keyed> {
        if let Found::Live(task) = found
            && by_id.means(&task)
        {
            self.load(now, task);
        }
        match self.residence.by_id(by_id.id) {
            Some(slot) => self.by_id_known(now, call, by_id, slot),
            None => {
                self.ledger.answer(call, Answer::ById(Err(ByIdError::NotFound)));
                None
            }
        }
    }

    /// Acts on a task in memory. A dead task lives again only if no other task has its key by now: then the command on that key is
    /// returned, to run first.
    pub(crate) fn by_id_known(&mut self, now: Now, call: CallId, by_id: ById, slot: Slot) -> Option<Keyed> {
        let entry = self.residence.get(slot);
        let revives = matches!(by_id.act, Act::Run | Act::Lease { .. }) && entry.is_dead();
        if revives && by_id.means(&entry.task) {
            let place = (entry.task.queue.clone(), entry.task.key.clone());
            return Some(Keyed::ById { by_id, place });
        }
        self.act(now, call, &by_id, slot);
        self.evict(slot, now);
        None
    }

    /// Acts on a task whose key is in memory, or known to lead to no task. Returns the command if the task has left memory.
    pub(crate) fn by_id_keyed(&mut self, now: Now, call: CallId, by_id: ById) -> Option<ById> {
        let Some(slot) = self.residence.by_id(by_id.id) else {
            // The task left memory while its key was looked up.
            return Some(by_id);
        };
        self.act(now, call, &by_id, slot);
        self.evict(slot, now);
        None
    }

    fn act(&mut self, now: Now, call: CallId, by_id: &ById, slot: Slot) {
        let entry = self.residence.get(slot);
        let answer = match (self.ledger.check_changes(), entry.state()) {
            _ if !by_id.means(&entry.task) => Err(ByIdError::NotFound),
            (Err(why), _) if by_id.act != Act::Get => Err(why.into()),
            // The state in memory may have been written down or not.
            (Err(Unavailable::ReadOnly { why }), _) if entry.dirty.is_some() => {
                Err(ByIdError::Unavailable(Unavailable::Indeterminate { why }))
            }
            (_, None) => Err(ByIdError::NotFound),
            (_, Some(state)) => match by_id.act {
                Act::Get => Ok(Acted::Task(Box::new(self.view(slot)))),
                _ if state == State::Leased => Err(ByIdError::Leased),
                Act::Cancel => {
                    self.end(now, slot, Outcome::Cancelled);
                    Ok(Acted::Cancelled)
                }
                Act::Run if state == State::Ready => Err(ByIdError::Ready),
                Act::Run => {
                    let due = self.make_due(now, slot, state, Redriven::ByOwner);
                    due.map(|()| Acted::Task(Box::new(self.view(slot))))
                }
                Act::Lease { lease_ms } => {
                    let taking = Taking { lease_ms, worker: by_id.worker.as_ref() };
                    self.lease_this(now, slot, state, taking)
                }
            },
        };
        self.ledger.answer(call, Answer::ById(answer));
    }

    /// Leases one task to the caller, and makes it due first if needed. No limit, rate or pause of its queue holds it up: the caller wants
    /// exactly this task.
    fn lease_this(
        &mut self,
        now: Now,
        slot: Slot,
        state: State,
        taking: Taking<'_>,
    ) -> Result<Acted, ByIdError> {
        if self.ledger.is_stopping() {
            // The task was looked up in the store meanwhile. The leases are written down already, and this one would not go on after the
            // next start.
            return Err(Unavailable::Closed.into());
        }
        if state != State::Ready {
            self.make_due(now, slot, state, Redriven::ForLease)?;
        }
        if !matches!(self.residence.get(slot).at, At::Ready { .. }) {
            // The task expired meanwhile.
            return Err(ByIdError::NotFound);
        }
        Ok(Acted::Leased(Box::new(self.delivery(now).grant_one(slot, taking))))
    }

    /// Makes a scheduled task due at once, or gives a dead task another life.
    fn make_due(&mut self, now: Now, slot: Slot, state: State, by: Redriven) -> Result<(), ByIdError> {
        if state == State::Dead {
            self.decide_redrive(now, slot, by)?;
            return Ok(());
        }
        Ok(self.hasten(now, slot, by)?)
    }

    /// Makes a scheduled task due. Everything else in it stays, and so do the later moments of a timeline.
    pub(crate) fn hasten(&mut self, now: Now, slot: Slot, by: Redriven) -> Result<(), Unavailable> {
        let task = Arc::clone(self.residence.task(slot));
        self.ledger.take_room(task_bytes(&task, true))?;
        self.unplace(slot);
        let (fence, version) = (self.dispatch.fence(), self.ledger.applied().next());
        self.record(slot, |task| {
            let delay_ms = task.due_at.ms_since(task.put_at);
            let tally = &mut task.extra_mut().tally;
            // The delay that the task was given stays known.
            tally.delay_ms = tally.delay_ms.or(Some(delay_ms));
            tally.count_redrive(by);
            task.due_at = now.wall;
            if by == Redriven::ByOwner {
                task.version = version;
            }
            task.lease_fence = fence;
        });
        self.ledger.counters_mut().scheduled_total += u64::from(by == Redriven::ByOwner);
        self.place(slot, now);
        Ok(())
    }
}
