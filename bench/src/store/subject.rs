//! [`Keeper`]: the seam behind which every store stands.

use std::path::Path;

use tickwheel_engine::DueKey;
use tickwheel_queue::{Key, Timestamp};

use super::record::Record;

/// A pending task as a store gives it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) place: DueKey,
    pub(crate) id: u64,
    pub(crate) key: Key,
    /// Which record it was made from, by its payload.
    pub(crate) number: u64,
}

/// Why a task ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Done,
    Cancelled,
}

/// Keeps tasks on a disk, for one owner.
///
/// Workloads are generic over it. A commit is durable when it returns: it survives a power cut.
pub(crate) trait Keeper: Sized + Send {
    /// One change of a batch. A put can be made on another thread, before the commit that carries it.
    type Change: Send;

    /// Opens what is in `dir`, or a new one. It is recovered and can be written to when this returns.
    fn open(dir: &Path, wall: Timestamp) -> anyhow::Result<Self>;

    /// A new task.
    fn put(record: Record) -> Self::Change;

    /// The end of one that is pending.
    fn end(&self, pending: Pending, end: End, at: Timestamp) -> Self::Change;

    /// Makes these durable, all or none. `wall` is the time now.
    fn commit(&mut self, wall: Timestamp, changes: Vec<Self::Change>) -> anyhow::Result<()>;

    /// The next pending tasks in order, strictly after `after`, due at or before `until`: none only if there is none.
    fn page(&mut self, after: DueKey, until: Timestamp, max: usize) -> anyhow::Result<Vec<Pending>>;

    /// Both at once: a page that does not count on the commit, and is not delayed by it.
    fn commit_and_page(
        &mut self,
        wall: Timestamp,
        changes: Vec<Self::Change>,
        page: (DueKey, Timestamp, usize),
    ) -> anyhow::Result<Vec<Pending>>;

    /// What these keys stand for now.
    fn get(&mut self, keys: &[Key]) -> anyhow::Result<Vec<Option<Pending>>>;

    /// Waits until nothing is done in the background any more, as far as that can be told.
    fn rest(&mut self) -> anyhow::Result<()>;

    /// Gives it up in peace.
    fn close(self) -> anyhow::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::feed::{batch, fill};
    use crate::store::ours::Ours;
    use crate::store::peer::Peer;
    use crate::store::record::{Keys, Records, wall};

    /// Puts, looks up, ends and opens again. Returns what is left, in order.
    fn story<K: Keeper>(keys: Keys) -> Vec<u64> {
        let dir = tempfile::tempdir().expect("a place for files");
        let (data, records) = (dir.path().join("data"), Records::new(keys).expect("a queue"));
        let begun = wall();
        let mut keeper = K::open(&data, begun).expect("a new one");
        // One instant for all, so that they come in the same order wherever they are kept.
        for first in [0, 50] {
            let puts = batch::<K>(&records, first..first + 50, begun).expect("records");
            keeper.commit(begun, puts).expect("a commit");
        }
        let wanted = [0, 7, 99, 100].map(|n| records.key(n).expect("a key"));
        let found = keeper.get(&wanted).expect("a look-up");
        let numbers: Vec<_> =
            found.iter().map(|found| found.as_ref().map(|pending| pending.number)).collect();
        assert_eq!(numbers, [Some(0), Some(7), Some(99), None]);
        let cancelled = found.into_iter().flatten().map(|found| keeper.end(found, End::Cancelled, begun));
        let cancelled = cancelled.collect();
        keeper.commit(begun, cancelled).expect("a commit");
        let page = keeper.page(DueKey::START, Timestamp::MAX, 10).expect("a page");
        let last = page.last().expect("ten").place;
        let ended = page.into_iter().map(|pending| keeper.end(pending, End::Done, last.due_at)).collect();
        keeper.commit(last.due_at, ended).expect("a commit");
        keeper.rest().expect("it comes to rest");
        keeper.close().expect("it closes");

        let mut keeper = K::open(&data, last.due_at).expect("opened again");
        let early = keeper.page(DueKey::START, last.due_at, 10).expect("a page");
        assert!(early.is_empty(), "{early:?}");
        let left = keeper.page(DueKey::START, Timestamp::MAX, 1_000).expect("a page");
        assert!(left.is_sorted_by_key(|pending| pending.place));
        assert_eq!(keeper.get(&wanted).expect("a look-up"), [None, None, None, None]);
        assert!(fill(&mut keeper, &records, 100..2_150).expect("two batches and a bit") > 0.0);
        let all = keeper.page(DueKey::START, Timestamp::MAX, 10_000).expect("a page");
        assert_eq!(all.len(), left.len() + 2_050);
        keeper.close().expect("it closes");
        left.into_iter().map(|pending| pending.number).collect()
    }

    #[test]
    fn all_stores_tell_the_same_story() {
        for keys in [Keys::Own, Keys::Server] {
            let ours = story::<Ours>(keys);
            assert_eq!(ours.len(), 100 - 3 - 10);
            assert_eq!(ours, story::<Peer>(keys));
        }
    }
}
