//! [`Entries`]: the tasks that are whole in memory, by slot, by key and by id.

use core::hash::Hasher;
use std::sync::Arc;

use hashbrown::HashTable;
use siphasher::sip::SipHasher13;
use tickwheel_core::Handle;

use crate::calls::State;
use crate::name::{Key, QueueName, Tag};
use crate::seam::RequestId;
use crate::task::{Body, Extra, LeaseNo, Outcome, Task};
use crate::time::{Seq, Timestamp};

/// The number of a task's entry in memory, valid until the entry leaves memory. [`Residence`](super::Residence) gives the number
/// out.
pub(crate) type Slot = u32;

/// The number of a queue inside the engine, valid while the engine has the queue. [`Dispatch`](crate::dispatch::Dispatch) gives the number
/// out.
pub(crate) type QueueNo = u32;

/// The place of an effect on a task: the number of a batch, and the index of the effect in the batch.
pub(crate) type BatchSlot = (u64, u32);

/// A task that is whole in memory.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) task: Arc<Task>,
    pub(crate) at: At,
    /// The number of the last change of the task; `None` once the engine has learned that this change is durable.
    pub(crate) dirty: Option<Seq>,
    /// The batch that has the last effect of the task, which may be sealed, and the index of the effect in this batch. `None`: no batch got
    /// an effect of this entry yet.
    pub(crate) batch_slot: Option<BatchSlot>,
    /// Whether the store has the body of the task, or a batch before the one of `batch_slot` brings the body.
    pub(crate) body_sealed: bool,
    /// Whether the body is too big to stay in memory when nothing needs it, even if memory has room.
    pub(crate) bulky: bool,
    /// The last read that was under way when the entry was pinned: the entry stays in memory until every read up to this one is answered.
    /// `None`: the entry is not pinned.
    pub(crate) pinned: Option<RequestId>,
}

/// The index that an entry is in, or the reason why the entry is in none.
#[derive(Debug)]
pub(crate) enum At {
    /// In no index: the entry is about to be placed, the task is due beyond the horizon, or the task is a dead one that cannot be forgotten
    /// because no changes are taken any more. The entry of a task beyond the horizon leaves memory once the task is durable.
    Far,
    /// In the wheel.
    Waiting(Handle),
    /// In the rewound set: the task is due after now, though the wheel has passed its due time, because the wall clock stepped back.
    Rewound,
    /// Ready: in the line of its queue, or parked because of its group.
    Ready {
        /// When the task became ready.
        since: Timestamp,
    },
    /// A worker has the task under this lease.
    Leased(RunningLease),
    /// The task has ended. The entry leaves memory once the end is durable.
    Ended(Outcome),
}

/// A lease that runs.
#[derive(Debug)]
pub(crate) struct RunningLease {
    pub(crate) no: LeaseNo,
    pub(crate) timer: Handle,
    pub(crate) until: Timestamp,
    /// When the task became ready, before the lease began.
    pub(crate) ready_since: Timestamp,
    /// Whether the lease took a token of its queue's rate, if the queue has one. The token comes back if the delivery reaches no worker.
    pub(crate) paced: bool,
}

impl Entry {
    /// Makes an entry that is in no index yet.
    pub(crate) fn new(task: Arc<Task>, body_sealed: bool) -> Self {
        let bulky = is_bulky(&task);
        Self { task, at: At::Far, dirty: None, batch_slot: None, body_sealed, bulky, pinned: None }
    }

    /// Whether the task was given up and has not ended.
    pub(crate) fn is_dead(&self) -> bool {
        self.state() == Some(State::Dead)
    }

    /// Returns the state that the task's owner sees; `None` once the task has ended.
    pub(crate) fn state(&self) -> Option<State> {
        match self.at {
            At::Ended(_) => None,
            _ if self.task.dead().is_some() => Some(State::Dead),
            At::Far | At::Waiting(_) | At::Rewound => Some(State::Scheduled),
            At::Ready { .. } => Some(State::Ready),
            At::Leased(_) => Some(State::Leased),
        }
    }

    /// Whether the task has neither ended nor been given up.
    pub(crate) fn is_live(&self) -> bool {
        self.state().is_some_and(|state| state != State::Dead)
    }
}

/// A slab of entries, with an index by key and an index by id. The hashes are keyed with the shard's secret, so that no client can choose
/// keys that collide. No code iterates over an index, so the order of the hashes has no effect.
#[derive(Debug)]
pub(crate) struct Entries {
    slots: Vec<Option<Entry>>,
    free: Vec<Slot>,
    by_key: HashTable<Indexed>,
    by_id: HashTable<Indexed>,
    /// Memory that all entries take (bytes), about.
    bytes: u64,
    secret: [u8; 16],
}

/// An element of an index. The hash is kept in the element, so that an index that grows need not read the tasks. Reading 50,000 tasks took
/// 30 ms, and no call was served in that time.
#[derive(Copy, Clone, Debug)]
struct Indexed {
    hash: u32,
    slot: Slot,
}

impl Indexed {
    fn hash(&self) -> u64 {
        spread(self.hash)
    }
}

/// Makes a hash of 64 bits out of one of 32 bits. A table uses the lowest and the highest bits, so both halves get the hash.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl Entries {
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            by_key: HashTable::new(),
            by_id: HashTable::new(),
            bytes: 0,
            secret,
        }
    }

    pub(crate) fn get(&self, slot: Slot) -> &Entry {
        self.slots[slot as usize].as_ref().expect("a slot is only used while its entry is there")
    }

    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Entry {
        self.slots[slot as usize].as_mut().expect("a slot is only used while its entry is there")
    }

    /// Whether the slot has an entry now. Only code that has kept the slot for a while needs to ask, because the entry may have left
    /// memory.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.slots[slot as usize].is_some()
    }

    pub(crate) fn by_key(&self, queue: &QueueName, key: &Key) -> Option<Slot> {
        let hash = hash_key(&self.secret, queue, key);
        let is_it = |indexed: &Indexed| {
            let task = || &self.get(indexed.slot).task;
            indexed.hash == hash && task().key == *key && task().queue == *queue
        };
        self.by_key.find(spread(hash), is_it).map(|indexed| indexed.slot)
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<Slot> {
        let hash = hash_id(&self.secret, id);
        let is_it = |indexed: &Indexed| indexed.hash == hash && self.get(indexed.slot).task.id == id;
        self.by_id.find(spread(hash), is_it).map(|indexed| indexed.slot)
    }

    /// Adds an entry. No other entry may have its id. If the task is keyed, the index by key gets this entry in place of an entry whose
    /// task has ended or is dead.
    pub(crate) fn insert(&mut self, entry: Entry) -> Slot {
        let hash = hash_id(&self.secret, entry.task.id);
        debug_assert!(self.by_id(entry.task.id).is_none());
        let keyed = entry.task.is_keyed();
        self.bytes += entry_bytes(&entry.task);
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(entry);
                slot
            }
            None => {
                let slot = Slot::try_from(self.slots.len()).expect("fewer than 2^32 tasks in memory");
                self.slots.push(Some(entry));
                slot
            }
        };
        self.by_id.insert_unique(spread(hash), Indexed { hash, slot }, Indexed::hash);
        if keyed {
            self.index_key(slot);
        }
        slot
    }

    /// Puts this entry into the index by key. If the index has another entry for the key, whose task has ended or is dead, replaces it.
    pub(crate) fn index_key(&mut self, slot: Slot) {
        let task = Arc::clone(&self.get(slot).task);
        let before = self.by_key(&task.queue, &task.key);
        assert!(
            before.is_none_or(|before| before == slot || !self.get(before).is_live()),
            "one live task for each key"
        );
        let hash = hash_key(&self.secret, &task.queue, &task.key);
        match before.and_then(|before| self.by_key.find_mut(spread(hash), |indexed| indexed.slot == before)) {
            Some(found) => found.slot = slot,
            None => drop(self.by_key.insert_unique(spread(hash), Indexed { hash, slot }, Indexed::hash)),
        }
    }

    /// Takes an entry out of memory and out of both indexes, and returns the entry.
    pub(crate) fn remove(&mut self, slot: Slot) -> Entry {
        let task = Arc::clone(&self.get(slot).task);
        let key_hash = hash_key(&self.secret, &task.queue, &task.key);
        if let Ok(found) = self.by_key.find_entry(spread(key_hash), |indexed| indexed.slot == slot) {
            found.remove();
        }
        let id_hash = hash_id(&self.secret, task.id);
        if let Ok(found) = self.by_id.find_entry(spread(id_hash), |indexed| indexed.slot == slot) {
            found.remove();
        }
        self.bytes -= entry_bytes(&task);
        self.free.push(slot);
        self.slots[slot as usize].take().expect("a slot is only removed while its entry is there")
    }

    /// Gives an entry a new record.
    pub(crate) fn set_task(&mut self, slot: Slot, task: Arc<Task>) {
        let bytes = entry_bytes(&task);
        let entry = self.get_mut(slot);
        entry.bulky = is_bulky(&task);
        let old = core::mem::replace(&mut entry.task, task);
        self.bytes = self.bytes + bytes - entry_bytes(&old);
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the memory that all entries take (bytes), about.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the memory that this entry takes (bytes), about.
    pub(crate) fn bytes_of(&self, slot: Slot) -> u64 {
        entry_bytes(&self.get(slot).task)
    }

    /// Returns the slot after `slot`, in a round over all slots, free ones included; `None`: there is no slot.
    pub(crate) fn next_slot(&self, slot: Slot) -> Option<Slot> {
        let next = slot.checked_add(1).filter(|&next| (next as usize) < self.slots.len());
        next.or((!self.slots.is_empty()).then_some(0))
    }
}

/// The approximate memory of an entry without its texts, tags, extra members and payload (bytes). The sum has these parts: the slot in the
/// slab; the elements in both indexes; one element in the wheel, the line or the lease wheel; the record and the body with their reference
/// counts; the rounding of the allocator.
const ENTRY_BYTES: usize =
    size_of::<Option<Entry>>() + size_of::<Task>() + size_of::<Body>() + 192 + size_of::<usize>() * 4;

/// Returns the memory that an entry of this task takes (bytes), about.
fn entry_bytes(task: &Task) -> u64 {
    let body = &task.body;
    let texts = task.queue.as_str().len() + task.key.as_str().len() + body.content_type.len();
    let tags: usize = body.tags.iter().map(|tag| tag.as_str().len() + size_of::<Tag>()).sum();
    let extra = task.extra.as_ref().map_or(0, |extra| size_of::<Extra>() + extra.text_bytes());
    (ENTRY_BYTES + texts + tags + extra + body.payload_bytes()) as u64
}

/// A body of more bytes than this stays in memory only until its task is durable, while a worker has the task, while the task is at the
/// head of its line, or while the entry is pinned.
const BODY_BYTES_MAX: usize = 4_096;

/// Whether the body of the task has more than `BODY_BYTES_MAX` bytes.
pub(crate) fn is_bulky(task: &Task) -> bool {
    task.body.payload_bytes() > BODY_BYTES_MAX
}

fn hash_key(secret: &[u8; 16], queue: &QueueName, key: &Key) -> u32 {
    let mut hasher = SipHasher13::new_with_key(secret);
    hasher.write(queue.as_str().as_bytes());
    hasher.write_u8(0);
    hasher.write(key.as_str().as_bytes());
    half(hasher.finish())
}

fn hash_id(secret: &[u8; 16], id: u64) -> u32 {
    let mut hasher = SipHasher13::new_with_key(secret);
    hasher.write_u64(id);
    half(hasher.finish())
}

fn half(hash: u64) -> u32 {
    (hash >> 32) as u32
}
