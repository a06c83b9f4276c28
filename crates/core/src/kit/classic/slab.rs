//! [`Slab`]: the memory of a queue's entries. An entry never moves, so its place can be part of its handle.

use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::ops::{Index, IndexMut};

use crate::{Handle, Refusal, Refused};

/// One pending entry.
pub(super) struct Entry<T> {
    pub(super) deadline: u64,
    /// The number of the insertion. It decides the order of entries with equal deadlines.
    pub(super) seq: u64,
    /// The position of the entry in the queue, if it does not follow from the deadline: the index in the heap, or the index of the level.
    pub(super) home: usize,
    /// The neighbours in the [`List`](super::list::List) that the entry is in.
    pub(super) prev: Option<u32>,
    pub(super) next: Option<u32>,
    value: T,
}

impl<T> Entry<T> {
    /// The sort key: the entry with the smaller key fires first.
    pub(super) fn order(&self) -> (u64, u64) {
        (self.deadline, self.seq)
    }
}

/// The memory for one entry at a time. Each entry in the room gets a new generation.
struct Room<T> {
    /// The generation of the present entry. If the room is empty, it is the generation of the next entry.
    generation: NonZeroU32,
    entry: Option<Entry<T>>,
}

/// Rooms for entries. The place of an entry is the number of its room.
///
/// A *room* is the memory for one entry. The place of an entry is the number of its room.
pub(super) struct Slab<T> {
    rooms: Vec<Room<T>>,
    /// The places of the empty rooms that can take an entry. A room whose last generation was used is not among them.
    free: Vec<u32>,
    len: usize,
    inserted: u64,
    /// The largest number of rooms.
    limit: usize,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { rooms: Vec::new(), free: Vec::new(), len: 0, inserted: 0, limit: u32::MAX as usize }
    }

    /// An empty slab of at most `limit` rooms, for tests: a test cannot fill four billion rooms.
    #[cfg(test)]
    pub(super) fn with_limit(limit: usize) -> Self {
        Self { limit, ..Self::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Puts an entry into a room. The entry is in no list yet.
    pub(super) fn insert(&mut self, deadline: u64, value: T) -> Result<Handle, Refused<T>> {
        let Some(place) = self.empty_room() else {
            let why = Refusal::Full;
            return Err(Refused { value, why });
        };
        let seq = self.inserted;
        let room = &mut self.rooms[place as usize];
        room.entry = Some(Entry { deadline, seq, home: 0, prev: None, next: None, value });
        // The number cannot overflow: 2^64 insertions, at one per nanosecond, take 584 years.
        self.inserted += 1;
        self.len += 1;
        Ok(Handle::new(place, room.generation))
    }

    /// The place of the entry that `handle` names; `None` if the handle is stale.
    pub(super) fn find(&self, handle: Handle) -> Option<u32> {
        let room = self.rooms.get(handle.place() as usize)?;
        (room.entry.is_some() && room.generation == handle.generation()).then_some(handle.place())
    }

    /// Empties the room of an entry that is in no list, and returns its value.
    pub(super) fn remove(&mut self, place: u32) -> T {
        let room = &mut self.rooms[place as usize];
        let Some(entry) = room.entry.take() else {
            panic!("place {place} is to be left, but is empty");
        };
        if let Some(following) = room.generation.checked_add(1) {
            room.generation = following;
            self.free.push(place);
        }
        self.len -= 1;
        entry.value
    }

    fn empty_room(&mut self) -> Option<u32> {
        if let Some(place) = self.free.pop() {
            return Some(place);
        }
        let place = self.rooms.len();
        if place >= self.limit || self.rooms.try_reserve(1).is_err() {
            return None;
        }
        self.rooms.push(Room { generation: NonZeroU32::MIN, entry: None });
        Some(place as u32)
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = Entry<T>;

    fn index(&self, place: u32) -> &Entry<T> {
        match &self.rooms[place as usize].entry {
            Some(entry) => entry,
            None => panic!("place {place} is in a queue, but empty"),
        }
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, place: u32) -> &mut Entry<T> {
        match &mut self.rooms[place as usize].entry {
            Some(entry) => entry,
            None => panic!("place {place} is in a queue, but empty"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_left_last_is_taken_first_by_a_new_generation() {
        let mut slab = Slab::new();
        let a = slab.insert(1, 'a').expect("there is room");
        let b = slab.insert(1, 'b').expect("there is room");
        assert_eq!(slab.remove(a.place()), 'a');
        assert_eq!(slab.remove(b.place()), 'b');
        let c = slab.insert(1, 'c').expect("there is room");
        assert_eq!(c.place(), b.place());
        assert_eq!(c.generation().get(), b.generation().get() + 1);
        assert_eq!((slab.find(a), slab.find(b), slab.find(c)), (None, None, Some(c.place())));
        assert_eq!((slab.len(), slab.rooms.len()), (1, 2));
    }

    #[test]
    fn a_full_slab_gives_the_value_back() {
        let mut slab = Slab::with_limit(1);
        let a = slab.insert(1, 'a').expect("there is room");
        let refused = slab.insert(1, 'b').expect_err("there is one room");
        assert_eq!((refused.why, refused.value), (Refusal::Full, 'b'));
        slab.remove(a.place());
        assert!(slab.insert(1, 'c').is_ok());
    }

    #[test]
    fn a_room_whose_generations_are_used_up_is_never_taken_again() {
        let mut slab = Slab::new();
        let first = slab.insert(1, 'a').expect("there is room");
        slab.rooms[0].generation = NonZeroU32::MAX;
        let last = Handle::new(0, NonZeroU32::MAX);
        assert_eq!(slab.find(last), Some(0));
        assert_eq!(slab.remove(0), 'a');
        let next = slab.insert(1, 'b').expect("there is room");
        assert_eq!(next.place(), 1);
        assert_eq!((slab.find(first), slab.find(last)), (None, None));
        assert_eq!(slab.len(), 1);
    }
}
