//! [`Tasks`]: the changes of a task, wherever it is and whichever worker has it.

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

pub(crate) use self::lease_end::revoke;

/// The organs that a change of a task may touch: the verbs of owners and workers work with these, and so does time.
///
/// A change of one task numbers and writes it ([`Ledger`]), keeps it in memory where it stands now ([`Residence`]), counts it in its queue and
/// moves it in the line ([`Dispatch`]), and may set its schedule going ([`Recurrence`]).
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
    /// The part that hands tasks out.
    pub(crate) fn delivery(&mut self) -> Delivery<'_> {
        Delivery { dispatch: self.dispatch, residence: self.residence, ledger: self.ledger, now: self.now }
    }

    /// Makes changes that have to be durable as a whole or not at all.
    pub(crate) fn together<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.ledger.begin_together();
        let done = act(self);
        self.ledger.end_together(outer);
        done
    }
}
