//! The permits of exports. Each caller has a share, and one permit is for administrators only. An export whose
//! client takes no data gives its permit to another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel_api::Problem;
use tokio::sync::Notify;

use crate::access::producer::Producer;

/// The number of exports at one time; each reads the store as fast as its client takes the data.
const EXPORTS_MAX: usize = 4;
/// The number of exports of one caller. It is more than one, because a client whose connection broke begins again
/// before the server has noticed.
const EXPORTS_OF_ONE_MAX: usize = 2;
/// The number of exports of callers whose token has no `admin` for all queues.
const EXPORTS_OF_OTHERS_MAX: usize = EXPORTS_MAX - 1;
/// The time after which a client that takes no page loses its permit to another export. A page has at most 4 MiB.
pub(crate) const STANDS_STILL: Duration = Duration::from_secs(60);

/// The permits of all exports.
#[derive(Debug, Default)]
pub(crate) struct ExportPermits(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<u64, Open>,
    next: u64,
}

#[derive(Debug)]
struct Open {
    producer: Producer,
    is_admin: bool,
    stands_still: bool,
    leave: Arc<Notify>,
}

/// The permit of an export. Dropping it frees the permit.
#[derive(Debug)]
pub(crate) struct ExportPermit {
    id: u64,
    leave: Arc<Notify>,
    state: Arc<Mutex<State>>,
}

impl ExportPermits {
    /// Takes a permit for one more export. If there is none, the first export whose client stands still loses its
    /// permit.
    ///
    /// # Errors
    /// 429, which names the limit.
    pub(crate) fn enter(&self, producer: Producer, is_admin: bool) -> Result<ExportPermit, Box<Problem>> {
        let mut state = lock(&self.0);
        while let Some(full) = state.full(producer, is_admin) {
            let Some(id) = state.to_leave(producer, full) else { return Err(Box::new(full.refusal())) };
            if let Some(open) = state.open.remove(&id) {
                open.leave.notify_one();
            }
        }
        state.next += 1;
        let (id, leave) = (state.next, Arc::new(Notify::new()));
        state.open.insert(id, Open { producer, is_admin, stands_still: false, leave: Arc::clone(&leave) });
        Ok(ExportPermit { id, leave, state: Arc::clone(&self.0) })
    }
}

/// The limit that refuses an export.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Full {
    /// The share of the caller.
    Share,
    /// The share of all callers without `admin`.
    Others,
    /// All permits.
    All,
}

impl Full {
    fn refusal(self) -> Problem {
        let (what, hint) = match self {
            Self::Share => (
                format!(
                    "the caller has {EXPORTS_OF_ONE_MAX} exports under way, which is the limit for one caller"
                ),
                "read them to their end, or close their connections",
            ),
            Self::Others => (
                format!(
                    "{EXPORTS_OF_OTHERS_MAX} exports are under way; the last permit is kept for administrators"
                ),
                "try again when one of them is over",
            ),
            Self::All => (
                format!("{EXPORTS_MAX} exports are under way, which is the limit"),
                "try again when one of them is over",
            ),
        };
        Problem::busy(what, 5).with_hint(hint)
    }
}

impl State {
    fn full(&self, producer: Producer, is_admin: bool) -> Option<Full> {
        let count = |is_one: &dyn Fn(&Open) -> bool| self.open.values().filter(|open| is_one(open)).count();
        if producer.has_share() && count(&|open| open.producer == producer) >= EXPORTS_OF_ONE_MAX {
            return Some(Full::Share);
        }
        if !is_admin && count(&|open| !open.is_admin) >= EXPORTS_OF_OTHERS_MAX {
            return Some(Full::Others);
        }
        (self.open.len() >= EXPORTS_MAX).then_some(Full::All)
    }

    /// The first export that stands still and whose permit this caller may use.
    fn to_leave(&self, producer: Producer, full: Full) -> Option<u64> {
        let helps = |open: &Open| match full {
            Full::Share => open.producer == producer,
            Full::Others => !open.is_admin,
            Full::All => true,
        };
        self.open.iter().find(|(_, open)| open.stands_still && helps(open)).map(|(id, _)| *id)
    }
}

impl ExportPermit {
    /// Notes whether the client stands still.
    pub(crate) fn stands_still(&self, stands_still: bool) {
        if let Some(open) = lock(&self.state).open.get_mut(&self.id) {
            open.stands_still = stands_still;
        }
    }

    /// Waits until the export must give up its permit.
    pub(crate) async fn leaves(&self) {
        self.leave.notified().await;
    }
}

impl Drop for ExportPermit {
    fn drop(&mut self) {
        lock(&self.state).open.remove(&self.id);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u8) -> Producer {
        Producer::Token([number; 32])
    }

    fn refused(permits: &ExportPermits, producer: Producer, is_admin: bool) -> String {
        permits.enter(producer, is_admin).expect_err("no permit").detail
    }

    #[test]
    fn one_caller_has_its_share_and_the_last_permit_is_for_administrators() {
        let permits = ExportPermits::default();
        let enter = |producer, is_admin| permits.enter(producer, is_admin).expect("a permit");
        let first = enter(token(1), false);
        let _second = enter(token(1), false);
        assert!(refused(&permits, token(1), false).contains("the caller has 2 exports"));
        let _third = enter(token(2), false);
        assert!(refused(&permits, token(3), false).contains("kept for administrators"));
        let _admin = enter(token(9), true);
        assert!(refused(&permits, token(8), true).contains("4 exports are under way"));
        drop(first);
        enter(token(3), false);
    }

    #[test]
    fn callers_of_this_machine_have_all_places() {
        let permits = ExportPermits::default();
        let held: Vec<ExportPermit> =
            (0..4).map(|_| permits.enter(Producer::Local, true).expect("a permit")).collect();
        assert!(refused(&permits, Producer::Local, true).contains("4 exports are under way"));
        drop(held);
        permits.enter(Producer::Local, true).expect("a permit");
    }

    #[tokio::test]
    async fn an_export_that_stands_still_makes_way_for_another() {
        let permits = ExportPermits::default();
        let held: Vec<ExportPermit> =
            [1, 1, 2].map(|number| permits.enter(token(number), false).expect("a permit")).into();
        refused(&permits, token(3), false);
        held[2].stands_still(true);
        assert!(
            refused(&permits, token(1), false).contains("the caller has 2"),
            "another's permit is no help"
        );
        held[2].stands_still(false);
        refused(&permits, token(3), false);
        held[1].stands_still(true);
        let _third = permits.enter(token(3), false).expect("a permit");
        held[1].leaves().await;
        refused(&permits, token(4), false);
    }
}
