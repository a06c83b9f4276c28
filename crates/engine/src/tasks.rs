//! [`Tasks`]: the changes of a task, whether the task waits, is ready, is leased or is dead.

mod change;
mod evict;
mod expiry;
mod lease_end;
mod load;
mod place;

use crate::config::EngineConfig;
use crate::dispatch::{Delivery, Dispatch};
use crate::ledger::Ledger;
use crate::recurrence::Recurrence;
use crate::residence::Residence;
use crate::time::Now;

pub(crate) use self::lease_end::{LeaseEnd, Retrying, revoke};

/// The parts of the engine that a change of a task may touch. The calls of owners and workers use these parts, and the passing of time does
/// too.
///
/// The [`Ledger`] numbers a change and puts it into the write batch. The [`Residence`] keeps the task in memory. The [`Dispatch`] counts
/// the task in its queue and moves it in the line. The [`Recurrence`] lets the schedule of the task go on.
pub(crate) struct Tasks<'a> {
    pub(crate) config: &'a EngineConfig,
    pub(crate) secret: &'a [u8; 16],
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) residence: &'a mut Residence,
    pub(crate) dispatch: &'a mut Dispatch,
    pub(crate) recurrence: &'a mut Recurrence,
    /// The moment of this step or flush.
    pub(crate) now: Now,
}

impl Tasks<'_> {
    /// Returns the part that hands tasks out to workers.
    pub(crate) fn delivery(&mut self) -> Delivery<'_> {
        Delivery { dispatch: self.dispatch, residence: self.residence, ledger: self.ledger, now: self.now }
    }

    /// Runs `act`. The changes that `act` makes become durable all together or not at all.
    pub(crate) fn together<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.ledger.begin_together();
        let done = act(self);
        self.ledger.end_together(outer);
        done
    }
}
