//! The heads of the lines: records of ready tasks that are stubs are fetched before a lease can have them.

use super::Engine;
use super::queues::QueueNo;
use super::runs::Ordered;
use super::stub::ReadyKey;
use crate::name::QueueName;
use crate::seam::Found;
use crate::time::Now;

/// A record that is to be fetched.
#[derive(Copy, Clone, Debug)]
pub(super) struct Fetch {
    pub(super) queue: QueueNo,
    pub(super) key: ReadyKey,
    pub(super) id: u64,
}

impl Engine {
    /// After a grant: the next leases should find whole tasks, too.
    pub(super) fn fetch_ahead(&mut self, name: &QueueName) {
        let low = self.near.has_ready()
            && self.queues.get(name).is_some_and(|queue| !queue.line.has_whole(self.config.bounds.head / 2));
        if low && !self.sheds() {
            self.hungry.insert(name.clone());
        }
    }

    /// What the hungry queues want of the store: what the first call in line needs, and the head of the line for the next.
    pub(super) fn fetch_heads(&mut self) {
        let (fetched, fetched_bytes) = (self.config.bounds.fetched, self.config.bounds.fetched_bytes);
        while let Some(name) = self.hungry.pop_first() {
            let ahead = if self.sheds() { 0 } else { self.config.bounds.head };
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
            fetches.into_iter().for_each(|fetch| self.lookups.want_head(fetch));
        }
    }

    /// The store answered with the record of a stub, unless a command has met that stub before.
    pub(super) fn head_found(&mut self, now: Now, fetch: Fetch, found: Found) {
        let Some(queue) = self.queues.fetched(fetch) else { return };
        if queue.line.stubs().get(fetch.key).is_none() {
            return;
        }
        match found {
            Found::Live(task) => {
                self.load(now, task);
            }
            Found::Ended(_) | Found::Absent => {
                self.fail_after_commit(&format!("the store has lost task {}", fetch.id));
            }
        }
    }
}
