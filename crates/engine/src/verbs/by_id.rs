//! Calls on a task that is named by its id, in any queue and with any key.

use std::sync::Arc;

use crate::calls::{Act, Acted, Answer, ById, ByIdError, State, Unavailable};
use crate::dispatch::Taking;
use crate::input::CallId;
use crate::ledger::task_bytes;
use crate::reads::Identified;
use crate::residence::{At, Slot};
use crate::task::{Outcome, Redriven};
use crate::tasks::Tasks;

impl Tasks<'_> {
    /// Runs a command on a task in memory, answers the call, and evicts the task if nothing needs it. The caller has looked up the task's
    /// key before a command that makes a dead task live again. So a live task with the same key is in memory, if there is one.
    pub(crate) fn run_identified(&mut self, call: CallId, command: &Identified, slot: Slot) {
        let answer = match command {
            Identified::ById(_) if !command.means(self.residence.task(slot)) => command.not_found(),
            Identified::ById(by_id) => Answer::ById(self.act(by_id, slot)),
            // `redrive` reports a failed store before it reports that the task was not found.
            Identified::Redrive(redrive) => Answer::Redrive(self.redrive(&redrive.queue, slot)),
        };
        self.ledger.answer(call, answer);
        self.evict(slot);
    }

    fn act(&mut self, by_id: &ById, slot: Slot) -> Result<Acted, ByIdError> {
        let entry = self.residence.get(slot);
        match (self.ledger.check_changes(), entry.state()) {
            (Err(why), _) if by_id.act != Act::Get => Err(why.into()),
            // The engine does not know whether the state in memory was written down before the store failed.
            (Err(Unavailable::ReadOnly { why }), _) if entry.dirty.is_some() => {
                Err(ByIdError::Unavailable(Unavailable::Indeterminate { why }))
            }
            (_, None) => Err(ByIdError::NotFound),
            (_, Some(state)) => match by_id.act {
                Act::Get => Ok(Acted::Task(Box::new(self.view(slot)))),
                _ if state == State::Leased => Err(ByIdError::Leased),
                Act::Cancel => {
                    self.end(slot, Outcome::Cancelled);
                    Ok(Acted::Cancelled)
                }
                Act::Run if state == State::Ready => Err(ByIdError::Ready),
                Act::Run => {
                    let due = self.make_due(slot, state, Redriven::ByOwner);
                    due.map(|()| Acted::Task(Box::new(self.view(slot))))
                }
                Act::Lease { lease_ms } => {
                    let taking = Taking { lease_ms, worker: by_id.worker.as_ref() };
                    self.lease_this(slot, state, taking)
                }
            },
        }
    }

    /// Leases exactly this task to the caller, and makes the task due first if needed. The limits, the rate and a pause of the queue do not
    /// hold the lease up, because the caller names the task.
    fn lease_this(&mut self, slot: Slot, state: State, taking: Taking<'_>) -> Result<Acted, ByIdError> {
        if self.ledger.is_stopping() {
            // The stop began while the store looked the task up. The running leases are written down already, so this lease would not go on
            // after the next start.
            return Err(Unavailable::Closed.into());
        }
        if state != State::Ready {
            self.make_due(slot, state, Redriven::ForLease)?;
        }
        if !matches!(self.residence.get(slot).at, At::Ready { .. }) {
            // Only a ready task can be leased.
            return Err(ByIdError::NotFound);
        }
        Ok(Acted::Leased(Box::new(self.delivery().grant_one(slot, taking))))
    }

    /// Makes a scheduled task due at once, or makes a dead task live again and due at once.
    fn make_due(&mut self, slot: Slot, state: State, by: Redriven) -> Result<(), ByIdError> {
        if state == State::Dead {
            self.decide_redrive(slot, by)?;
            return Ok(());
        }
        Ok(self.hasten(slot, by)?)
    }

    /// Makes a scheduled task due at once. The content of the task and the later moments of its timeline stay.
    pub(crate) fn hasten(&mut self, slot: Slot, by: Redriven) -> Result<(), Unavailable> {
        let task = Arc::clone(self.residence.task(slot));
        self.ledger.take_room(task_bytes(&task, true))?;
        self.unplace(slot);
        self.renew(slot, |task, now, seq| {
            let delay_ms = task.due_at.ms_since(task.put_at);
            let tally = &mut task.extra_mut().tally;
            // Keeps the delay that the task had, because `due_at` is about to change.
            tally.delay_ms = tally.delay_ms.or(Some(delay_ms));
            tally.count_redrive(by);
            task.due_at = now.wall;
            if by == Redriven::ByOwner {
                task.version = seq;
            }
        });
        self.ledger.counters_mut().scheduled_total += u64::from(by == Redriven::ByOwner);
        self.place_asked(slot);
        Ok(())
    }
}
