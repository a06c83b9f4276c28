//! A peer everybody can write: the standard library's B-tree, by deadline and then by order of insertion.

use std::collections::BTreeMap;

use super::subject::{Fired, Jump, Store, Subject, by_next_wake};

/// The key of a timer is its handle.
type Key = (u64, u64);

/// `BTreeMap<(deadline, seq), value>`.
#[derive(Debug)]
pub(crate) struct Tree {
    map: BTreeMap<Key, u64>,
    now: u64,
    seq: u64,
}

impl Store for Tree {
    type Handle = Key;

    fn new() -> Self {
        Self { map: BTreeMap::new(), now: 0, seq: 0 }
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Key {
        let key = (deadline, self.seq);
        self.seq += 1;
        self.map.insert(key, value);
        key
    }

    #[inline]
    fn cancel(&mut self, key: Key) -> u64 {
        self.map.remove(&key).expect("it is pending")
    }

    #[inline]
    fn replace(&mut self, key: &mut Key, deadline: u64, value: u64) -> u64 {
        let cancelled = self.cancel(*key);
        *key = self.insert(deadline, value);
        cancelled
    }

    #[inline]
    fn release(&mut self, _: Key) {}
}

impl Subject for Tree {
    #[inline]
    fn reschedule(&mut self, key: &mut Key, deadline: u64) {
        let value = self.cancel(*key);
        // Its place in the order of insertion stays.
        key.0 = deadline;
        self.map.insert(*key, value);
    }

    #[inline]
    fn advance(&mut self, now: u64) -> Fired {
        self.now = now;
        let mut fired = Fired::default();
        while let Some(first) = self.map.first_entry()
            && first.key().0 <= now
        {
            fired.one(first.remove());
        }
        fired
    }

    fn next(&mut self) -> Jump {
        by_next_wake(self, |tree| tree.map.first_key_value().map(|(key, _)| key.0))
    }
}
