//! The leases that run: who has what, and page by page for those who ask.

use core::ops::Bound;
use std::sync::Arc;

use super::Engine;
use super::entries::{At, Slot};
use crate::calls::{Answer, LeasePage, LeaseView, ListLeases, Unavailable};
use crate::cursor::LeaseCursor;
use crate::input::CallId;
use crate::task::LeaseNo;
use crate::time::Timestamp;

/// A lease that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) slot: Slot,
    pub(super) holder: Holder,
}

/// Who has a task, and since when. It is kept in memory only: nothing is known of a lease of an earlier life.
#[derive(Clone, Default, Debug)]
pub(super) struct Holder {
    pub(super) since: Option<Timestamp>,
    /// The name by which its worker asked for it.
    pub(super) worker: Option<Arc<str>>,
}

/// How a worker asks for tasks.
#[derive(Copy, Clone, Debug)]
pub(super) struct Taking<'a> {
    /// For how long; `None`: as the task or its queue says.
    pub(super) lease_ms: Option<u64>,
    /// The worker's name.
    pub(super) worker: Option<&'a Arc<str>>,
}

impl Engine {
    pub(super) fn list_leases(&mut self, call: CallId, list: &ListLeases) {
        let page = self.page_of_leases(list);
        self.answer(call, Answer::Leases(page));
    }

    fn page_of_leases(&self, list: &ListLeases) -> Result<LeasePage, Unavailable> {
        let ListLeases { queue, worker, after, max } = list;
        let mut page = LeasePage::default();
        let shard = self.ownership.shard.number();
        let Some(behind) = after.map_or(Some(Bound::Unbounded), |after| after.behind_in(shard)) else {
            return Ok(page);
        };
        let mut behind = self.leases.range((behind, Bound::Unbounded));
        let mut last = None;
        for (&no, running) in behind.by_ref().take((*max).max(1)) {
            last = Some(no);
            let Running { slot, holder } = running;
            let entry = self.entries.get(*slot);
            if let (Some(why), Some(_)) = (&self.failed, entry.dirty) {
                // What memory knows may have been written down or not.
                return Err(Unavailable::Indeterminate { why: Arc::clone(why) });
            }
            let is_wanted = queue.as_ref().is_none_or(|queue| *queue == entry.task.queue)
                && worker.as_ref().is_none_or(|worker| holder.worker.as_ref() == Some(worker));
            if is_wanted {
                page.leases.push(self.lease_view(no, running));
            }
        }
        let last = last.map(|no| LeaseCursor { shard, no });
        page.next = last.filter(|_| behind.next().is_some());
        Ok(page)
    }

    fn lease_view(&self, no: LeaseNo, running: &Running) -> LeaseView {
        let Running { slot, holder } = running;
        let entry = self.entries.get(*slot);
        let At::Leased(held) = &entry.at else { unreachable!("a running lease is of a leased task") };
        LeaseView {
            cursor: LeaseCursor { shard: self.ownership.shard.number(), no },
            queue: entry.task.queue.clone(),
            key: entry.task.key.clone(),
            attempt: entry.task.attempts.saturating_add(1),
            worker: holder.worker.clone(),
            since: holder.since,
            until: held.until,
        }
    }

    /// Who has the task with this lease.
    pub(super) fn holder(&self, no: LeaseNo) -> Holder {
        self.leases.get(&no).map(|running| running.holder.clone()).unwrap_or_default()
    }
}
