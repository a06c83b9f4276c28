//! [`InboxCalls`]: makes calls of the rows in the inbox of a store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tickwheel_engine::{Answer, Call as _, CallId, Input, TakeRow, TakeRowError};
use tickwheel_store::{InboxRow, QueueStore, RowEnd};

use super::Shard;
use crate::notice::{Listener, Notice};
use crate::router::Router;

/// Makes calls of the rows in the inbox of one shard's store, and tells the store what became of them.
///
/// A row is a call like any other: the engine sees it only while the shard serves, and its answer leaves only while the shard is owned
/// without doubt. So a row that was answered had its effect, or will have none.
#[derive(Debug)]
pub struct InboxCalls {
    /// The number of the next call, in common with all callers of the queue.
    calls: Arc<AtomicU64>,
    /// The rows whose calls were not answered yet.
    under_way: BTreeMap<CallId, u64>,
    listener: Listener,
    refused_total: u64,
}

impl InboxCalls {
    pub(crate) fn new(calls: Arc<AtomicU64>, listener: Listener) -> Self {
        Self { calls, under_way: BTreeMap::new(), listener, refused_total: 0 }
    }

    /// Returns the calls of a driver whose further calls get their numbers from `calls`, too. No listener learns of the rows that are refused.
    #[must_use]
    pub fn unheard(calls: Arc<AtomicU64>) -> Self {
        Self::new(calls, Listener::default())
    }

    /// Returns how many rows were refused since the queue was opened.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused_total
    }

    /// Takes the rows that have come from the store of a shard that is served, and adds their calls to the inputs. Returns whether there
    /// are any. An engine that takes no changes any more gets none.
    pub fn begin<S: QueueStore>(&mut self, shard: &mut Shard<S>, inputs: &mut Vec<Input>) -> bool {
        let takes_changes = shard.running().is_some_and(|engine| engine.failure().is_none());
        if !takes_changes || shard.is_in_doubt() {
            return false;
        }
        let router = Router::new(shard.id().count()).expect("a shard is one of 1 to 1,024");
        let mut are_any = false;
        for InboxRow { id, asked } in shard.store_mut().take_rows() {
            let asked = asked.and_then(|take| {
                let place = router.of_queue(&take.queue);
                if place == shard.id() {
                    Ok(take)
                } else {
                    Err(format!("the queue belongs to {place}, and the row names {}", shard.id()))
                }
            });
            match asked {
                Ok(take) => {
                    let call = CallId(self.calls.fetch_add(1, Ordering::Relaxed));
                    self.under_way.insert(call, id);
                    inputs.push(Input::Call { call, command: take.command() });
                    are_any = true;
                }
                Err(why) => self.refuse(shard.store_mut(), id, why),
            }
        }
        are_any
    }

    /// Tells the store what became of a row, if `call` is that of a row.
    pub fn answered<S: QueueStore>(&mut self, shard: &mut Shard<S>, call: CallId, answer: Answer) {
        let Some(row) = self.under_way.remove(&call) else { return };
        let store = shard.store_mut();
        match TakeRow::open(answer) {
            Some(Ok(())) => store.row_ended(row, RowEnd::Taken),
            Some(Err(why @ TakeRowError::Refused(_))) => self.refuse(store, row, why.to_string()),
            Some(Err(TakeRowError::Unavailable(_))) => store.row_ended(row, RowEnd::Later),
            None => unreachable!("an answer has the kind of its call"),
        }
    }

    fn refuse<S: QueueStore>(&mut self, store: &mut S, row: u64, why: String) {
        self.refused_total += 1;
        self.listener.tell(Notice::RowRefused { row, why: why.as_str().into() });
        store.row_ended(row, RowEnd::Refused { why });
    }

    /// Forgets the rows under way, because the shard was lost. The store has forgotten them, too.
    pub fn forget(&mut self) {
        self.under_way.clear();
    }
}
