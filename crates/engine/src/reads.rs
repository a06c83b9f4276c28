//! [`Reads`]: questions to the store, and the calls that wait for the replies.

mod forecasts;
mod identified;
mod keyed;
mod lists;
mod lookups;
mod token_calls;

use self::forecasts::Forecasts;
pub(crate) use self::identified::Identified;
pub(crate) use self::keyed::{Keyed, NamedPut};
pub(crate) use self::lists::Listing;
use self::lists::Lists;
use self::lookups::Lookups;
pub(crate) use self::lookups::Purpose;
pub(crate) use self::token_calls::{TokenCall, Verb};
use crate::bounds::Bounds;
use crate::calls::Command;
use crate::input::CallId;

/// The questions to the store, the commands that wait for the replies, and the calls for counts.
///
/// # Invariants
/// - A command on a key that is not in memory waits for the look-up of the key. Later commands on the same key wait behind it.
/// - The store is asked for a list or a forecast only once all changes that had been applied when its call came are durable, or the store
///   has failed.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    lookups: Lookups,
    lists: Lists,
    forecasts: Forecasts,
    /// Calls for counts, which wait until memory has all tasks that are due, or a scan has failed.
    counting: Vec<(CallId, Command)>,
    /// The largest number of records that are fetched at a time for stubs that expired or are to be forgotten.
    overdue_max: usize,
}

impl Reads {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self { overdue_max: bounds.overdue, ..Self::default() }
    }

    /// Lets a call for counts wait until memory has all tasks that are due, or a scan has failed.
    pub(crate) fn count(&mut self, call: CallId, command: Command) {
        self.counting.push((call, command));
    }

    /// Takes out all calls that wait for counts.
    pub(crate) fn take_counting(&mut self) -> Vec<(CallId, Command)> {
        core::mem::take(&mut self.counting)
    }

    /// Whether the store has answered all questions, no question waits to be sent, and no call waits for counts.
    pub(crate) fn is_idle(&self) -> bool {
        self.lookups.is_empty()
            && self.lists.is_empty()
            && self.forecasts.is_empty()
            && self.counting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Get;
    use crate::name::{Key, QueueName};

    fn get(key: u64) -> Keyed {
        Keyed::Get(Get { queue: QueueName::new("orders").expect("a name"), key: Key::from_id(key) })
    }

    #[test]
    fn commands_on_a_key_wait_in_their_order_and_the_key_is_looked_up_once() {
        let mut reads = Reads::new(&Bounds::default());
        for (call, key) in [(1, 7), (2, 8), (3, 7)] {
            let command = get(key);
            reads.wait_for_key(command.place(), CallId(call), command);
        }
        let place = get(7).place();
        assert!(reads.is_waited_for(&place) && !reads.is_idle());
        let calls: Vec<u64> = reads.end_wait_for_key(&place).into_iter().map(|(call, _)| call.0).collect();
        assert_eq!(calls, [1, 3]);
        assert!(!reads.is_waited_for(&place) && reads.end_wait_for_key(&place).is_empty());
    }
}
