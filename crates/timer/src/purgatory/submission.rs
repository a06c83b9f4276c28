//! [`Submission`]: an operation that is being submitted.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::alarm::Alarm;
use super::completions::complete;
use super::delayed::Delayed;
use super::operation::Operation;
use super::panics::Panics;
use super::room::Room;
use super::state::Settled;
use super::submitted::{SubmitError, SubmitRefusal, Submitted};
use super::waiting::Waiting;
use crate::Refusal;

/// Owns the operation from the beginning, so that a thread that finds the operation on a key leaves a note and continues. The notes are
/// read when the submission ends. It then looks again, or hands a look over, so no change is missed.
///
/// A submission that is dropped before its end, as by a panic, withdraws the operation, unless the operation has ended.
pub(super) struct Submission<K: Hash + Eq + Send + Sync + 'static, O: Operation> {
    delayed: Arc<Delayed<K, O>>,
    over: bool,
}

impl<K, O> Submission<K, O>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    O: Operation,
{
    /// Looks, puts the operation on all keys, looks again, sets the timeout, and handles the notes.
    pub(super) fn submit(
        room: &Arc<Room<K, O>>,
        operation: Arc<O>,
        keys: Box<[K]>,
        timeout: Duration,
    ) -> Result<Submitted<O>, SubmitError<O>> {
        if keys.is_empty() {
            return Err(SubmitError { operation, why: SubmitRefusal::NoKeys });
        }
        if room.is_closed() {
            return Err(SubmitError { operation, why: SubmitRefusal::ShutDown });
        }
        // No other thread can know the operation yet, so no lock and no state change is needed.
        if operation.try_complete() {
            let mut panics = Panics::default();
            complete(&operation, false, &mut panics);
            panics.resume();
            return Ok(Submitted::Completed(operation));
        }
        let submission = Self { delayed: room.admit(operation, keys), over: false };
        room.watch(&submission.delayed);
        if room.is_closed() {
            return submission.refuse(SubmitRefusal::ShutDown);
        }
        let mut panics = Panics::default();
        let said = submission.delayed.operation().try_complete();
        if !said {
            let alarm = Alarm::new(Arc::clone(&submission.delayed));
            match room.timer().schedule(timeout, move || alarm.ring()) {
                Ok(timeout) => submission.delayed.arm(timeout),
                Err(refused) => {
                    return submission.refuse(match refused.why {
                        Refusal::Full => SubmitRefusal::Full,
                        // `NoPeriod` cannot occur here: only a periodic task can be refused with it.
                        Refusal::ShutDown | Refusal::NoPeriod => SubmitRefusal::ShutDown,
                    });
                }
            }
        }
        let settled = submission.delayed.settle(said, &mut panics);
        panics.resume();
        match settled {
            Settled::Completed | Settled::Forced | Settled::Expired => {
                Ok(Submitted::Completed(Arc::clone(submission.delayed.operation())))
            }
            // The operation may have ended since; another thread may still be carrying the end out.
            Settled::Idle | Settled::Cancelled | Settled::Again | Settled::HandOver => {
                Ok(submission.accept())
            }
        }
    }

    fn accept(mut self) -> Submitted<O> {
        self.over = true;
        Submitted::Waiting(Waiting::new(Arc::clone(&self.delayed)))
    }

    /// Gives the operation back, unless a thread that cancelled a key has returned it already.
    fn refuse(self, why: SubmitRefusal) -> Result<Submitted<O>, SubmitError<O>> {
        if self.delayed.withdraw() {
            Err(SubmitError { operation: Arc::clone(self.delayed.operation()), why })
        } else {
            Ok(self.accept())
        }
    }
}

impl<K: Hash + Eq + Send + Sync + 'static, O: Operation> Drop for Submission<K, O> {
    fn drop(&mut self) {
        if !self.over {
            self.delayed.withdraw();
        }
    }
}
