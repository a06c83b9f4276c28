//! By key.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;
use tickwheel_engine::{Ended, Key, QueueName, Task};

use super::grid::{Cell, Grid};

/// The hash of a queue and a key, keyed with the directory's secret, so that no client can choose keys that collide. The hash says which
/// tasks may have the key; the record of a task says whether the task has it.
///
/// 0 stands for a key that the server made, the decimal form of the task's id, and for one that leads to another task by now. Such a task
/// is found by its id.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct KeyHash(pub(crate) u64);

impl KeyHash {
    pub(crate) const MADE: Self = Self(0);
}

/// Hashes keys.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Naming {
    secret: [u8; 16],
}

impl Naming {
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { secret }
    }

    /// The hash under which a task stands in the index.
    pub(crate) fn of(&self, task: &Task) -> KeyHash {
        if task.is_keyed() { self.of_key(task.id, &task.queue, &task.key) } else { KeyHash::MADE }
    }

    /// The hash under which a task stands there as long as its key leads to it.
    pub(crate) fn of_keyed(&self, task: &Task) -> KeyHash {
        self.of_key(task.id, &task.queue, &task.key)
    }

    /// The hash under which a task that ended stood there.
    pub(crate) fn of_ended(&self, ended: &Ended) -> KeyHash {
        self.of_key(ended.id, &ended.queue, &ended.key)
    }

    fn of_key(&self, id: u64, queue: &QueueName, key: &Key) -> KeyHash {
        if id_of(key) == Some(id) { KeyHash::MADE } else { self.hash(queue, key) }
    }

    /// The hash of a key that the server did not make.
    pub(crate) fn hash(&self, queue: &QueueName, key: &Key) -> KeyHash {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        // Apart from the hashes that the same secret keys elsewhere.
        hasher.write(b"tickwheel keys ");
        hasher.write(queue.as_str().as_bytes());
        hasher.write_u8(0);
        hasher.write(key.as_str().as_bytes());
        KeyHash(hasher.finish().max(1))
    }
}

/// The id if this key is the decimal form of an id.
pub(crate) fn id_of(key: &Key) -> Option<u64> {
    let text = key.as_str();
    let plain = text.len() <= 20 && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Which tasks may have a key: 12 bytes for each task with a key of its own, about 17 with the space between.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Keys {
    grid: Grid<KeyCell>,
}

/// The upper half of the hash, and the id in two halves: so it is 12 bytes long, not 16.
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
        // The place in a table comes from what is left of 32 bits, times an odd number to fill the lower ones.
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

    /// Fetches the memory that a look-up will read, see [`Grid::touch`].
    pub(crate) fn touch(&self, hash: KeyHash) {
        self.grid.touch(KeyCell::new(hash, 0).hash());
    }

    pub(crate) fn insert(&mut self, hash: KeyHash, id: u64) {
        self.grid.insert(KeyCell::new(hash, id));
    }

    pub(crate) fn remove(&mut self, hash: KeyHash, id: u64) {
        let cell = KeyCell::new(hash, id);
        // The entry is missing only if a segment's footer disagreed with the task's record.
        self.grid.remove(cell.hash(), |other| *other == cell);
    }

    /// The ids of the tasks that may have the key, the youngest first.
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
