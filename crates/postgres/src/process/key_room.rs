//! [`KeyRoom`]: how many keys the shards of a process keep in memory together.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many keys the shards of a process may keep in memory together. A key takes about 24 bytes.
#[derive(Debug)]
pub(crate) struct KeyRoom {
    left: AtomicUsize,
}

impl KeyRoom {
    /// Returns a room that has place for `keys` keys.
    #[must_use]
    pub(crate) const fn new(keys: usize) -> Self {
        Self { left: AtomicUsize::new(keys) }
    }

    pub(crate) fn has(&self, keys: usize) -> bool {
        self.left.load(Ordering::Relaxed) >= keys
    }

    /// Takes the place of one key. Returns whether there was one.
    pub(crate) fn take(&self) -> bool {
        let less = |left: usize| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    pub(crate) fn give_back(&self, keys: usize) {
        self.left.fetch_add(keys, Ordering::Relaxed);
    }
}
