//! [`Reads`]: questions to the store, and the calls that wait for their answers.

mod forecasts;
mod imports;
mod keyed;
mod lists;
mod lookups;
mod token_calls;

use std::collections::BTreeMap;

use self::forecasts::Forecasts;
pub(crate) use self::imports::{ImportLook, Importing};
pub(crate) use self::keyed::Keyed;
pub(crate) use self::lists::Listing;
use self::lists::Lists;
use self::lookups::Lookups;
pub(crate) use self::lookups::Purpose;
pub(crate) use self::token_calls::{TokenCall, Verb};
use crate::bounds::Bounds;
use crate::calls::Command;
use crate::input::CallId;

/// What the store is asked, for whom, and what waits meanwhile.
///
/// # Invariants
/// - Commands on a key that is not in memory wait for its look-up, and later commands on that key wait behind them.
/// - A list or a forecast is asked once the store has all that had been applied when its call came.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    lookups: Lookups,
    lists: Lists,
    forecasts: Forecasts,
    token_calls: BTreeMap<CallId, TokenCall>,
    imports: BTreeMap<CallId, Importing>,
    /// Calls for counts that wait until it is known what is due.
    counting: Vec<(CallId, Command)>,
    /// Records of stubs that are fetched together because time has to do with them.
    overdue_max: usize,
}

impl Reads {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self { overdue_max: bounds.overdue, ..Self::default() }
    }

    /// A call for counts waits until it is known what is due.
    pub(crate) fn count(&mut self, call: CallId, command: Command) {
        self.counting.push((call, command));
    }

    /// The calls that wait for counts.
    pub(crate) fn take_counting(&mut self) -> Vec<(CallId, Command)> {
        core::mem::take(&mut self.counting)
    }

    /// Whether nothing is asked, or waits to be asked.
    pub(crate) fn is_idle(&self) -> bool {
        self.lookups.is_empty()
            && self.lists.is_empty()
            && self.forecasts.is_empty()
            && self.counting.is_empty()
    }
}
