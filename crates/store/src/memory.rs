//! [`MemoryStore`]: a store in memory only.

use tickwheel_engine::{
    Acquired, Epoch, Ownership, Reply, Request, RequestId, Seq, ShardId, ShardStore, Timestamp,
};

use crate::acquired::ACQUIRED_PAGE;
use crate::history::HistoryLimits;
use crate::table::Table;

/// Keeps the tasks of one shard in memory. A commit is done at once, and **nothing survives** the process.
///
/// For tests, for `--memory`, and as the simplest example of a store: it answers as `DiskStore` does.
///
/// ```
/// use tickwheel_engine::{Reply, Request, RequestId, ShardId, ShardStore, Timestamp};
/// use tickwheel_store::MemoryStore;
///
/// let mut store = MemoryStore::new([7; 16]);
/// store.submit(RequestId(1), Request::Acquire { shard: ShardId::ONLY, wall: Timestamp::EPOCH });
/// let mut replies = Vec::new();
/// store.poll(&mut replies);
/// assert!(matches!(replies[..], [(RequestId(1), Reply::Acquired(_))]));
/// ```
#[derive(Clone, Debug)]
pub struct MemoryStore {
    shard: ShardId,
    table: Table,
    secret: [u8; 16],
    room: u64,
    /// Entries in a page of the `Acquired` reply to a new owner.
    page: usize,
    epoch: Epoch,
    owned: bool,
    last_seq: Seq,
    last_wall: Timestamp,
    replies: Vec<(RequestId, Reply)>,
}

impl MemoryStore {
    /// Returns an empty store. `secret` is the secret in the `Acquired` reply. The caller makes the secret, because a store has no
    /// randomness.
    #[must_use]
    pub fn new(secret: [u8; 16]) -> Self {
        Self {
            shard: ShardId::ONLY,
            table: Table::with_history(secret, HistoryLimits::default()),
            secret,
            room: u64::MAX,
            page: ACQUIRED_PAGE,
            epoch: Epoch(0),
            owned: false,
            last_seq: Seq::ZERO,
            last_wall: Timestamp::EPOCH,
            replies: Vec::new(),
        }
    }

    /// Makes the store keep this shard, for a data set with several shards. Without this call, the store keeps [`ShardId::ONLY`].
    #[must_use]
    pub fn with_shard(mut self, shard: ShardId) -> Self {
        self.shard = shard;
        self
    }

    /// Makes the store report this `room` (bytes), whatever is stored. Without this call the room is `u64::MAX`.
    #[must_use]
    pub fn with_room(mut self, room: u64) -> Self {
        self.room = room;
        self
    }

    /// Sets how many entries a page of the `Acquired` reply has. The default is 4,096.
    #[must_use]
    pub fn with_acquired_page(mut self, entries: usize) -> Self {
        self.page = entries;
        self
    }

    /// Sets how many ended tasks of each queue are remembered, without a limit on their age. Without this call, the store has the default
    /// [`HistoryLimits`]. For an empty store only, because the earlier table is dropped.
    #[must_use]
    pub fn with_history(mut self, history_per_queue: usize) -> Self {
        self.table = Table::new(self.secret, history_per_queue);
        self
    }

    /// Returns the stored state.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::Acquire { shard, wall } => self.acquire(shard, wall),
            Request::AcquiredPage { after } => {
                Reply::AcquiredPage(self.table.acquired_page(Some(&after), self.page))
            }
            Request::Commit { ownership, seq, wall, batch } => {
                if !self.owns(ownership) {
                    return Reply::Fenced;
                }
                assert!(
                    seq >= self.last_seq,
                    "a commit ends at change {seq}, and {} is committed already",
                    self.last_seq
                );
                batch.effects.iter().for_each(|effect| self.table.apply(effect));
                if let Some(state) = batch.state {
                    self.table.join_state(state);
                }
                batch.rules.into_iter().for_each(|effect| self.table.apply_rule(effect));
                self.last_seq = seq;
                self.last_wall = self.last_wall.max(wall);
                self.table.forget_until(wall);
                Reply::Done { room: self.room }
            }
            Request::GetMany(wanted) => Reply::Found(wanted.iter().map(|w| self.table.find(w)).collect()),
            Request::ScanDue { after, until, max } => Reply::Page(self.table.scan_due(after, until, max)),
            Request::ScanFilter { filter, after, max } => {
                Reply::Page(self.table.scan_filter(&filter, after, max))
            }
            Request::Count(histogram) => {
                let (counts, counted) = self.table.count(&histogram);
                Reply::Counts { counts, counted }
            }
            Request::Release { ownership } => {
                if !self.owns(ownership) {
                    return Reply::Fenced;
                }
                self.owned = false;
                Reply::Released
            }
        }
    }

    fn acquire(&mut self, shard: ShardId, wall: Timestamp) -> Reply {
        if shard != self.shard {
            return Reply::Failed { why: format!("take {shard}: this store has {} only", self.shard) };
        }
        self.epoch = Epoch(self.epoch.0 + 1);
        self.owned = true;
        let last_wall = self.last_wall;
        self.last_wall = last_wall.max(wall);
        Reply::Acquired(Acquired {
            ownership: Ownership { shard, epoch: self.epoch, last_seq: self.last_seq },
            last_wall,
            state: self.table.state(),
            secret: self.secret,
            room: self.room,
            page: self.table.acquired_page(None, self.page),
        })
    }

    fn owns(&self, ownership: Ownership) -> bool {
        self.owned && ownership.shard == self.shard && ownership.epoch == self.epoch
    }
}

impl ShardStore for MemoryStore {
    fn submit(&mut self, id: RequestId, request: Request) {
        let reply = self.answer(request);
        self.replies.push((id, reply));
    }

    fn poll(&mut self, replies: &mut Vec<(RequestId, Reply)>) {
        replies.append(&mut self.replies);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_store() {
        crate::conformance::volatile(|options| {
            MemoryStore::new(options.secret)
                .with_history(options.history_per_queue)
                .with_acquired_page(options.acquired_page)
        });
    }
}
