//! [`Watchers`]: the waiting operations, by key.
//!
//! Ground rules: a key belongs to one shard, and the lock of the shard protects the list of the key. A thread holds one lock at a time, for
//! a bounded step. The only user code that runs under it is `Hash` and `Eq` of a key; removed entries are dropped after the lock is
//! released. `watched` changes only by the number of entries that a list really gained or lost. It is raised under the lock and lowered
//! after the lock is released, so it is never below zero.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, lock};

/// The number of locks. With 64, two busy keys rarely share a lock; an empty purgatory takes 8 KB for them. Under shuttle it is 1, so that
/// the same keys share a lock in every run.
const SHARDS: usize = if cfg!(tickwheel_shuttle) { 1 } else { 64 };

/// The number of entries that are copied in one step under the lock. The limit keeps a long list from blocking other threads.
const STEP: usize = 64;

/// A table with space for at most this number of keys is not shrunk.
const LEAST_ROOM: usize = 64;

/// The entries of a key, by the number of their submission.
type List<V> = BTreeMap<u64, Arc<V>>;

/// Lists of entries by key, each in the order of the entries' numbers.
///
/// An entry is in a list at most once, even if it is added again.
pub(super) struct Watchers<K, V> {
    hasher: RandomState,
    shards: Box<[Shard<K, V>]>,
    watched: AtomicUsize,
}

/// Aligned to 128 bytes against false sharing: processors fetch cache lines of 64 bytes in pairs.
#[repr(align(128))]
struct Shard<K, V>(Mutex<HashMap<K, List<V>>>);

impl<K: Hash + Eq, V> Watchers<K, V> {
    pub(super) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Shard(Mutex::new(HashMap::new()))).collect();
        Self { hasher: RandomState::new(), shards, watched: AtomicUsize::new(0) }
    }

    /// The number of entries in all lists. An entry counts once for each list that has it. O(1).
    pub(super) fn watched(&self) -> usize {
        self.watched.load(Ordering::Relaxed)
    }

    /// Adds an entry to the list of a key. O(log n) for n entries in the list.
    pub(super) fn watch(&self, key: K, number: u64, entry: &Arc<V>) {
        let entry = Arc::clone(entry);
        let mut shard = self.shard(&key);
        let before = if let Some(list) = shard.get_mut(&key) {
            list.insert(number, entry)
        } else {
            shard.insert(key, BTreeMap::from([(number, entry)]));
            None
        };
        if before.is_none() {
            // The entry is counted under the lock, so that no thread removes it before it is counted.
            self.watched.fetch_add(1, Ordering::Relaxed);
        }
        drop(shard);
    }

    /// Removes an entry from the list of a key, if it is there; an empty list is removed. O(log n).
    pub(super) fn unwatch(&self, key: &K, number: u64) {
        let mut shard = self.shard(key);
        let Some(list) = shard.get_mut(key) else { return };
        let entry = list.remove(&number);
        let emptied = if list.is_empty() { shard.remove_entry(key) } else { None };
        give_room_back(&mut shard);
        drop(shard);
        if entry.is_some() {
            self.watched.fetch_sub(1, Ordering::Relaxed);
        }
        drop((entry, emptied));
    }

    /// Calls `show` in order for every entry that is in the list of a key when the visit begins and is still there when the visit reaches
    /// it. No lock is held while `show` runs, so the list may change during the visit.
    pub(super) fn visit<Q: Hash + Eq + ?Sized>(&self, key: &Q, mut show: impl FnMut(&Arc<V>))
    where
        K: Borrow<Q>,
    {
        let (mut from, mut last) = (0, None);
        loop {
            let shard = self.shard(key);
            let Some(list) = shard.get(key) else { return };
            // Entries that are added after the beginning of the visit are not shown, because the visit might never end.
            let last = *last.get_or_insert_with(|| list.keys().next_back().map_or(0, |&number| number));
            let step: Vec<_> = list
                .range(from..=last)
                .take(STEP)
                .map(|(&number, entry)| (number, Arc::clone(entry)))
                .collect();
            drop(shard);
            for (_, entry) in &step {
                show(entry);
            }
            match step.last() {
                Some(&(number, _)) if number < last => from = number + 1,
                _ => return,
            }
        }
    }

    /// Removes the whole list of a key and returns its entries in order.
    pub(super) fn take<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Vec<Arc<V>>
    where
        K: Borrow<Q>,
    {
        let mut shard = self.shard(key);
        let taken = shard.remove_entry(key);
        give_room_back(&mut shard);
        drop(shard);
        let list = taken.map_or_else(BTreeMap::new, |(_, list)| list);
        self.watched.fetch_sub(list.len(), Ordering::Relaxed);
        list.into_values().collect()
    }

    /// Every entry once, in order. The shards are read one after the other, so an entry that is added meanwhile may be missing.
    pub(super) fn all(&self) -> Vec<Arc<V>> {
        let mut all = BTreeMap::new();
        for shard in &self.shards {
            let lists = lock(&shard.0);
            // The order of the hash map does not matter: the numbers sort the entries.
            all.extend(lists.values().flatten().map(|(&number, entry)| (number, Arc::clone(entry))));
        }
        all.into_values().collect()
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> MutexGuard<'_, HashMap<K, List<V>>> {
        lock(&self.shards[self.index(key)].0)
    }

    fn index<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        // The remainder is below SHARDS, so it fits.
        (self.hasher.hash_one(key) % SHARDS as u64) as usize
    }
}

/// Shrinks a table that is less than an eighth full to twice the number of its keys, because a table never shrinks by itself. The cost of
/// the moves is a small constant per removal on average.
fn give_room_back<K: Hash + Eq, V>(lists: &mut HashMap<K, List<V>>) {
    if lists.capacity() > LEAST_ROOM && lists.len() < lists.capacity() / 8 {
        lists.shrink_to(2 * lists.len());
    }
}

#[cfg(all(test, not(tickwheel_shuttle)))]
mod tests {
    use super::*;

    fn watchers(entries: impl IntoIterator<Item = (&'static str, u64)>) -> Watchers<String, u64> {
        let watchers = Watchers::new();
        for (key, number) in entries {
            watchers.watch(key.to_owned(), number, &Arc::new(number));
        }
        watchers
    }

    fn seen(watchers: &Watchers<String, u64>, key: &str) -> Vec<u64> {
        let mut seen = Vec::new();
        watchers.visit(key, |entry| seen.push(**entry));
        seen
    }

    fn keys(watchers: &Watchers<String, u64>) -> usize {
        watchers.shards.iter().map(|shard| lock(&shard.0).len()).sum()
    }

    #[test]
    fn a_list_is_in_order_of_number_however_long_it_is() {
        let watchers = watchers((0..200).rev().map(|number| ("a", number)));
        assert_eq!(seen(&watchers, "a"), (0..200).collect::<Vec<_>>());
        assert_eq!(seen(&watchers, "b"), []);
        assert_eq!(watchers.watched(), 200);
    }

    #[test]
    fn a_visit_does_not_see_what_came_after_it_began_nor_what_left() {
        let watchers = watchers((0..100).map(|number| ("a", number)));
        let mut seen = Vec::new();
        watchers.visit("a", |entry| {
            seen.push(**entry);
            watchers.watch("a".to_owned(), 1_000 + **entry, entry);
            watchers.unwatch(&"a".to_owned(), 99);
        });
        assert_eq!(seen, (0..99).collect::<Vec<_>>());
        assert_eq!(watchers.watched(), 99 + 99);
    }

    #[test]
    fn g9_an_entry_counts_once_and_a_list_with_nothing_left_is_forgotten() {
        let watchers = watchers([("a", 1), ("a", 1), ("b", 1), ("b", 2)]);
        assert_eq!((watchers.watched(), keys(&watchers)), (3, 2));
        for _ in 0..2 {
            watchers.unwatch(&"a".to_owned(), 1);
            assert_eq!((watchers.watched(), keys(&watchers)), (2, 1));
        }
        assert_eq!(watchers.take("b").iter().map(|entry| **entry).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((watchers.watched(), keys(&watchers)), (0, 0));
        assert!(watchers.take("b").is_empty());
    }

    /// Entries leave their keys one by one, and key by key.
    #[test]
    fn keys_without_waiters_take_no_memory() {
        for taken in [false, true] {
            let watchers = Watchers::new();
            for key in 0..50_000_u64 {
                watchers.watch(key, key, &Arc::new(key));
            }
            for key in 0..50_000 {
                if taken {
                    assert_eq!(watchers.take(&key).len(), 1);
                } else {
                    watchers.unwatch(&key, key);
                }
            }
            let room: usize = watchers.shards.iter().map(|shard| lock(&shard.0).capacity()).sum();
            assert!(room <= SHARDS * LEAST_ROOM, "room for {room} keys, taken: {taken}");
        }
    }

    #[test]
    fn all_entries_come_once_and_in_order() {
        let watchers = watchers([("c", 3), ("a", 2), ("b", 2), ("a", 1)]);
        assert_eq!(watchers.all().iter().map(|entry| **entry).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(watchers.watched(), 4, "only copied");
    }

    /// While the lock of one shard is held, all calls with a key of another shard work.
    #[test]
    fn g16_keys_of_different_shards_do_not_meet() {
        let watchers = watchers([("a", 1)]);
        let a = watchers.index("a");
        let other = (0..).map(|n| n.to_string()).find(|key| watchers.index(key) != a).expect("of 64 shards");
        let held = lock(&watchers.shards[a].0);
        watchers.watch(other.clone(), 2, &Arc::new(2));
        assert_eq!(seen(&watchers, &other), [2]);
        watchers.unwatch(&other, 2);
        assert!(watchers.take(&other).is_empty());
        drop(held);
        assert_eq!(watchers.watched(), 1);
    }
}
