//! [`Slab`]: the home of the entries. An entry never moves, so its place is half of its handle.

use alloc::vec::Vec;
use core::num::NonZeroU32;

use crate::Handle;

/// No place: the end of a list. It bounds the slab to 2^32 - 1 places.
pub(super) const NIL: u32 = u32::MAX;

/// One pending entry. `prev` and `next` link the entries of a slot; the level and the slot are not
/// stored, because they follow from the deadline and the base of the hierarchy.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) deadline: u64,
    /// The number of the insertion, which decides among equal deadlines.
    pub(super) seq: u64,
    pub(super) prev: u32,
    pub(super) next: u32,
    generation: NonZeroU32,
    value: T,
}

/// A place: taken by an entry, or free. The free ones form a stack.
///
/// The generation of a free place is the one its next tenant will get. A generation is used once
/// in each place; after the last one the place is retired: it is free, but in no list.
enum Place<T> {
    Free { next: u32, generation: NonZeroU32 },
    Taken(Entry<T>),
}

// The tag hides in the generation, which is never 0.
const _: () = assert!(size_of::<Place<u32>>() == 32, "an entry with a u32 takes 32 bytes");
const _: () = assert!(size_of::<Place<u64>>() == 40, "an entry with a u64 takes 40 bytes");

/// Places for entries.
///
/// Insert and remove are O(1), amortised over the growth of the vector. The place freed last is
/// taken first, because it is the one most likely in the cache. Memory follows the peak.
pub(super) struct Slab<T> {
    places: Vec<Place<T>>,
    free: u32,
    taken: usize,
    /// How many places there may be.
    limit: u32,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self::with_limit(NIL)
    }

    /// An empty slab of at most `limit` places. Fewer than `NIL` are for tests, which cannot fill
    /// four billion.
    pub(super) const fn with_limit(limit: u32) -> Self {
        Self { places: Vec::new(), free: NIL, taken: 0, limit }
    }

    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self { places: Vec::with_capacity(capacity), ..Self::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place<T>>()
    }

    /// Takes a place for a value. The entry is in no list yet. Gives the value back if every place
    /// is taken or the allocator has no memory for more.
    pub(super) fn insert(&mut self, deadline: u64, seq: u64, value: T) -> Result<Handle, T> {
        let (place, generation) = if self.free == NIL {
            if self.places.len() >= self.limit as usize || self.places.try_reserve(1).is_err() {
                return Err(value);
            }
            let place = self.places.len() as u32;
            let generation = NonZeroU32::MIN;
            self.places.push(Place::Free { next: NIL, generation });
            (place, generation)
        } else {
            let place = self.free;
            let Place::Free { next, generation } = self.places[place as usize] else {
                panic!("place {place} is in the list of free places, but taken");
            };
            self.free = next;
            (place, generation)
        };
        self.places[place as usize] =
            Place::Taken(Entry { deadline, seq, prev: NIL, next: NIL, generation, value });
        self.taken += 1;
        Ok(Handle::new(place, generation))
    }

    /// The place of a handle's entry; `None` if the handle is stale.
    pub(super) fn find(&self, handle: Handle) -> Option<u32> {
        match self.places.get(handle.place() as usize)? {
            Place::Taken(entry) if entry.generation == handle.generation() => Some(handle.place()),
            Place::Taken(_) | Place::Free { .. } => None,
        }
    }

    /// The entry in a place that is known to be taken.
    pub(super) fn entry(&self, place: u32) -> &Entry<T> {
        match &self.places[place as usize] {
            Place::Taken(entry) => entry,
            Place::Free { .. } => panic!("place {place} is linked, but free"),
        }
    }

    /// The entry in a place that is known to be taken.
    pub(super) fn entry_mut(&mut self, place: u32) -> &mut Entry<T> {
        match &mut self.places[place as usize] {
            Place::Taken(entry) => entry,
            Place::Free { .. } => panic!("place {place} is linked, but free"),
        }
    }

    /// Frees a place that is known to be taken and in no list, and returns its deadline and value.
    pub(super) fn remove(&mut self, place: u32) -> (u64, T) {
        let home = &mut self.places[place as usize];
        let Place::Taken(Entry { generation, .. }) = *home else {
            panic!("place {place} is to be freed, but is free");
        };
        let (next, generation) = match generation.checked_add(1) {
            Some(following) => (core::mem::replace(&mut self.free, place), following),
            // The generations are used up. Losing the place, once in 4 billion tenants, is the
            // price of a stale handle that never finds another's entry.
            None => (NIL, generation),
        };
        self.taken -= 1;
        match core::mem::replace(home, Place::Free { next, generation }) {
            Place::Taken(entry) => (entry.deadline, entry.value),
            Place::Free { .. } => unreachable!("place {place} was taken a moment ago"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_freed_last_is_taken_first_by_a_new_generation() {
        let mut slab = Slab::new();
        let a = slab.insert(1, 0, 'a').expect("there is room");
        let b = slab.insert(1, 1, 'b').expect("there is room");
        assert_eq!(slab.remove(a.place()), (1, 'a'));
        assert_eq!(slab.remove(b.place()), (1, 'b'));
        let c = slab.insert(1, 2, 'c').expect("there is room");
        assert_eq!(c.place(), b.place());
        assert_eq!(c.generation().get(), b.generation().get() + 1);
        assert_eq!(slab.find(b), None);
        assert_eq!(slab.find(c), Some(c.place()));
        assert_eq!(slab.len(), 1);
    }

    #[test]
    fn a_full_slab_gives_the_value_back() {
        let mut slab = Slab::with_limit(2);
        slab.insert(1, 0, 'a').expect("there is room");
        let b = slab.insert(1, 1, 'b').expect("there is room");
        assert_eq!(slab.insert(1, 2, 'c'), Err('c'));
        slab.remove(b.place());
        assert!(slab.insert(1, 3, 'd').is_ok());
        assert_eq!(slab.insert(1, 4, 'e'), Err('e'));
    }

    #[test]
    fn a_place_whose_generations_are_used_up_is_never_taken_again() {
        let mut slab = Slab::new();
        let first = slab.insert(1, 0, 'a').expect("there is room");
        slab.entry_mut(first.place()).generation = NonZeroU32::MAX;
        let last = Handle::new(first.place(), NonZeroU32::MAX);
        assert_eq!(slab.find(last), Some(first.place()));
        assert_eq!(slab.remove(first.place()), (1, 'a'));
        let next = slab.insert(1, 1, 'b').expect("there is room");
        assert_ne!(next.place(), first.place());
        assert_eq!(slab.find(first), None);
        assert_eq!(slab.find(last), None);
        assert_eq!(slab.len(), 1);
    }
}
