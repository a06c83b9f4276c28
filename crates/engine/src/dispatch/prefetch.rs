//! Prefetch: records of ready tasks that are stubs are fetched before a lease can have them.

use super::Dispatch;
use super::ready::ReadyKey;
use crate::name::QueueName;
use crate::residence::Residence;
use crate::runs::Ordered;
use crate::slot::QueueNo;

/// A record that is to be fetched.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Fetch {
    pub(crate) queue: QueueNo,
    pub(crate) key: ReadyKey,
    pub(crate) id: u64,
}

impl Dispatch {
    /// After a grant: marks the queue if too few tasks at its head are whole, so that the next leases find whole tasks, too.
    pub(super) fn fetch_ahead(&mut self, residence: &Residence, name: &QueueName) {
        let head = self.bounds.head / 2;
        let is_low = residence.has_ready_stubs()
            && self.queues.get(name).is_some_and(|queue| !queue.line.has_whole(head));
        if is_low && !residence.sheds() {
            self.to_prefetch.insert(name.clone());
        }
    }

    /// The records to fetch: those that the first call in each line needs, and the head of the line for the next call.
    pub(crate) fn prefetch(&mut self, residence: &Residence) -> Vec<Fetch> {
        let (fetched, fetched_bytes) = (self.bounds.fetched, self.bounds.fetched_bytes);
        let mut all = Vec::new();
        while let Some(name) = self.to_prefetch.pop_first() {
            let ahead = if residence.sheds() { 0 } else { self.bounds.head };
            let Some(no) = self.queues.number(&name) else { continue };
            let queue = self.queues.numbered(no);
            let needed = self.queues.first_waiter(&name).map_or(0, |(_, waiter)| waiter.max);
            let mut bytes = 0;
            let mut fetches = Vec::new();
            for stub in queue.line.stubs_among(needed.max(ahead)) {
                if queue.fetching.contains(&stub.key()) {
                    continue;
                }
                bytes += u64::from(stub.body_bytes);
                if fetches.len() >= fetched || !fetches.is_empty() && bytes > fetched_bytes {
                    break;
                }
                fetches.push(Fetch { queue: no, key: stub.key(), id: stub.id });
            }
            let queue = self.queues.numbered_mut(no);
            queue.fetching.extend(fetches.iter().map(|fetch| fetch.key));
            all.append(&mut fetches);
        }
        all
    }

    /// A record is here, or cannot be fetched. Returns whether its queue still waits for the record: the queue is still the one that asked,
    /// and its line has the stub.
    pub(crate) fn fetched(&mut self, fetch: Fetch) -> bool {
        self.queues.find_numbered(fetch.queue).is_some_and(|queue| {
            queue.fetching.remove(&fetch.key) && queue.line.stubs().get(fetch.key).is_some()
        })
    }
}
