//! The prefetch: fetches the records of ready tasks that are stubs, for the lease call that waits first and for the calls after it.

use super::Dispatch;
use super::ready::ReadyKey;
use crate::name::QueueName;
use crate::residence::{QueueNo, Residence};
use crate::runs::Ordered;

/// A record to fetch from the store, for a stub in a line.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Fetch {
    pub(crate) queue: QueueNo,
    pub(crate) key: ReadyKey,
    pub(crate) id: u64,
}

impl Dispatch {
    /// Runs after tasks were handed out. Marks the queue for the prefetch unless the first tasks of its line, half of `Bounds::head`, are
    /// whole, so that the next leases find whole tasks. Marks no queue while memory is short.
    pub(super) fn fetch_ahead(&mut self, residence: &Residence, name: &QueueName) {
        let head = self.bounds.head / 2;
        let is_low = residence.has_ready_stubs()
            && self.queues.get(name).is_some_and(|queue| !queue.line.has_whole(head));
        if is_low && !residence.sheds() {
            self.to_prefetch.insert(name.clone());
        }
    }

    /// Takes the marked queues, and returns the records to fetch for them: for each queue, the records of the stubs among the first tasks
    /// of its line. The first tasks are those that the first waiting call asks for, or `Bounds::head` tasks if that is more and memory is
    /// not short. Bounds limit the number and the size of the records of one queue. Records that are being fetched are left out.
    pub(crate) fn prefetch(&mut self, residence: &Residence) -> Vec<Fetch> {
        let (fetched, fetched_bytes) = (self.bounds.fetched, self.bounds.fetched_bytes);
        let mut all = Vec::new();
        while let Some(name) = self.to_prefetch.pop_first() {
            let ahead = if residence.sheds() { 0 } else { self.bounds.head };
            let Some(no) = self.queues.number(&name) else { continue };
            let queue = self.queues.numbered(no);
            let needed = self.queues.first_waiter(&name).map_or(0, |(_, waiter)| waiter.max);
            // Bodies that are being fetched count, too.
            let (mut bytes, mut is_first) = (0, true);
            let mut fetches = Vec::new();
            for stub in queue.line.stubs_among(needed.max(ahead)) {
                bytes += u64::from(stub.body_bytes);
                if queue.fetching.contains(&stub.key()) {
                    is_first = false;
                    continue;
                }
                if fetches.len() >= fetched || !is_first && bytes > fetched_bytes {
                    break;
                }
                is_first = false;
                fetches.push(Fetch { queue: no, key: stub.key(), id: stub.id });
            }
            let queue = self.queues.numbered_mut(no);
            queue.fetching.extend(fetches.iter().map(|fetch| fetch.key));
            all.append(&mut fetches);
        }
        all
    }

    /// Notes that the fetch of a record has ended, with or without the record. Returns whether the record is still needed: the queue has
    /// noted this fetch, and its line still has the stub.
    pub(crate) fn fetched(&mut self, fetch: Fetch) -> bool {
        self.queues.find_numbered(fetch.queue).is_some_and(|queue| {
            queue.fetching.remove(&fetch.key) && queue.line.stubs().get(fetch.key).is_some()
        })
    }
}
