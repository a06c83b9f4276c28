//! [`Keys`]: the ids of the tasks that may have a key.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;
use tickwheel_engine::{Ended, Key, QueueName, Task};

use super::grid::{Cell, Grid};

/// The hash of a queue and a key. The directory's secret is the key of the hash function, so that no client can choose keys that collide.
/// The hash finds the tasks that may have the key. The record of a task decides whether the task has it.
///
/// 0 is for a task that only its id finds: the server made the task's key from its id, or the task is dead and another task got its key.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct KeyHash(pub(crate) u64);

impl KeyHash {
    pub(crate) const MADE: Self = Self(0);
}

/// Hashes keys with the directory's secret.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Naming {
    secret: [u8; 16],
}

impl Naming {
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { secret }
    }

    /// Returns the hash under which the task is in [`Keys`]; [`KeyHash::MADE`] if only its id finds it.
    pub(crate) fn of(&self, task: &Task) -> KeyHash {
        if task.is_keyed() { self.of_key(task.id, &task.queue, &task.key) } else { KeyHash::MADE }
    }

    /// Returns the hash under which the task is in [`Keys`] while its key finds it; [`KeyHash::MADE`] if the server made the key.
    pub(crate) fn of_keyed(&self, task: &Task) -> KeyHash {
        self.of_key(task.id, &task.queue, &task.key)
    }

    /// Returns the hash of an ended task's key; [`KeyHash::MADE`] if the server made the key.
    pub(crate) fn of_ended(&self, ended: &Ended) -> KeyHash {
        self.of_key(ended.id, &ended.queue, &ended.key)
    }

    fn of_key(&self, id: u64, queue: &QueueName, key: &Key) -> KeyHash {
        if id_of(key) == Some(id) { KeyHash::MADE } else { self.hash(queue, key) }
    }

    /// Returns the hash of a queue and a key. The hash is never 0, also for a key that the server made.
    pub(crate) fn hash(&self, queue: &QueueName, key: &Key) -> KeyHash {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        // The prefix makes the hash differ from the other hashes that have the same secret as their key.
        hasher.write(b"tickwheel keys ");
        hasher.write(queue.as_str().as_bytes());
        hasher.write_u8(0);
        hasher.write(key.as_str().as_bytes());
        KeyHash(hasher.finish().max(1))
    }
}

/// Returns the id of which the key is the plain decimal form, if there is such an id.
pub(crate) fn id_of(key: &Key) -> Option<u64> {
    let text = key.as_str();
    let plain = text.len() <= 20 && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// The ids of the tasks that may have a key. There is an entry for each task that its key finds, unless the server made the key from the
/// id. An entry has 12 bytes, and takes about 17 bytes of memory with the empty places between.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Keys {
    grid: Grid<KeyCell>,
}

/// The upper half of the hash, and the id in two halves. With two halves, an entry is 12 bytes long, not 16.
#[derive(Copy, Clone, PartialEq, Debug)]
struct KeyCell {
    hash: u32,
    id: [u32; 2],
}

impl KeyCell {
    fn id(&self) -> u64 {
        u64::from(self.id[0]) << 32 | u64::from(self.id[1])
    }

    fn new(hash: KeyHash, id: u64) -> Self {
        Self { hash: (hash.0 >> 32) as u32, id: [(id >> 32) as u32, id as u32] }
    }
}

impl Cell for KeyCell {
    fn hash(&self) -> u64 {
        // The grid uses the upper 42 bits of a hash, and the entry has only 32 bits. The product with an odd number gives the other bits.
        u64::from(self.hash) << 32 | u64::from(self.hash.wrapping_mul(0x9e37_79b1))
    }

    const EMPTY: Self = Self { hash: u32::MAX, id: [u32::MAX; 2] };
}

impl Keys {
    pub(crate) fn new() -> Self {
        Self { grid: Grid::new() }
    }

    /// Makes space for `more` tasks.
    pub(crate) fn reserve(&mut self, more: u64) {
        self.grid.reserve(more);
    }

    /// Fetches the first place that a look-up of this hash will read, see [`Grid::touch`].
    pub(crate) fn touch(&self, hash: KeyHash) {
        self.grid.touch(KeyCell::new(hash, 0).hash());
    }

    pub(crate) fn insert(&mut self, hash: KeyHash, id: u64) {
        self.grid.insert(KeyCell::new(hash, id));
    }

    pub(crate) fn remove(&mut self, hash: KeyHash, id: u64) {
        let cell = KeyCell::new(hash, id);
        // The entry may be missing: another task may have got the task's key, or a segment's footer may have disagreed with the task's
        // record.
        self.grid.remove(cell.hash(), |other| *other == cell);
    }

    /// Returns the ids of the tasks that may have the key, the highest id first.
    pub(crate) fn candidates(&self, hash: KeyHash) -> Vec<u64> {
        let wanted = KeyCell::new(hash, 0);
        let cells = self.grid.candidates(wanted.hash()).filter(|cell| cell.hash == wanted.hash);
        let mut ids: Vec<u64> = cells.map(KeyCell::id).collect();
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::new(text).expect("a key")
    }

    #[test]
    fn only_the_plain_decimal_form_is_an_id() {
        assert_eq!(id_of(&key("17")), Some(17));
        assert_eq!(id_of(&key("18446744073709551615")), Some(u64::MAX));
        for other in ["0", "017", "+17", "17a", "18446744073709551616", "184467440737095516150"] {
            assert_eq!(id_of(&key(other)), None, "{other}");
        }
    }

    #[test]
    fn a_key_leads_to_all_that_may_have_it() {
        let naming = Naming::new([3; 16]);
        let queue = QueueName::new("q").expect("a name");
        let mut keys = Keys::new();
        for id in 1..=1_000_u64 {
            keys.insert(naming.hash(&queue, &key(&format!("k{}", id % 500))), id);
        }
        let hash = naming.hash(&queue, &key("k7"));
        assert_eq!(keys.candidates(hash), [507, 7]);
        keys.remove(hash, 507);
        assert_eq!(keys.candidates(hash), [7]);
        assert_eq!(keys.candidates(naming.hash(&queue, &key("k500"))), Vec::<u64>::new());
    }
}
