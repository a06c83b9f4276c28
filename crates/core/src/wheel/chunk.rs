//! [`Chunks`]: the memory of the entries.

use alloc::vec::Vec;
use core::mem;
use core::num::NonZeroU32;
use core::ops::Range;

use super::card::{Card, Cards};
use super::home::{COMMONS, Chunk, DRAIN, Home};
use super::id::{ChunkId, NIL, Place, SlotId, at};
use super::tree::Slot;
use crate::Handle;

/// Places in a chunk. A chunk of `u64` values is 1 KB.
pub(super) const CHUNK_PLACES: usize = 64;

/// A value and what has to stand beside it: the low words of its number and of its deadline. The
/// high words stand where many share them, in the slot; or else on the entry's card.
pub(super) struct Entry<T> {
    /// The low word of the number of its insertion, never 0.
    pub(super) generation: NonZeroU32,
    pub(super) deadline_low: u32,
    pub(super) value: T,
}

/// What is at a place.
enum Spot<T> {
    Taken(Entry<T>),
    /// One of the holes of its home, in a doubly linked list. The first one's `prev` means nothing.
    Hole {
        prev: Place,
        next: Place,
    },
}

const _: () = assert!(size_of::<Spot<u64>>() == 16, "an entry with a u64 is 16 bytes, taken or not");
const _: () = assert!(size_of::<Spot<u32>>() == 12, "an entry with a u32 is 12 bytes, taken or not");

impl<T> Spot<T> {
    const FREE: Self = Self::Hole { prev: NIL, next: NIL };
}

/// The chunk that has a place.
#[inline]
pub(super) const fn chunk_of(place: Place) -> ChunkId {
    place / CHUNK_PLACES as u32
}

/// The places of a chunk.
const fn places_of(id: ChunkId) -> Range<Place> {
    let first = id * CHUNK_PLACES as u32;
    first..first + CHUNK_PLACES as u32
}

/// An answer of [`Chunks::take_at_home`].
pub(super) enum Taken<T> {
    /// The value.
    Value(T),
    /// The value, and the slot that has lost its chunk by that.
    Emptied(T, SlotId),
    /// The entry does not live in a slot.
    Filed,
    /// There is no such entry.
    Stale,
}

/// All chunks, and the entries in them.
///
/// A chunk belongs to a slot, whose entries alone it has; or to the commons, where the entries of
/// slots with few live together; or to the drain; or it is unused.
pub(super) struct Chunks<T> {
    spots: Vec<Spot<T>>,
    chunks: Vec<Chunk>,
    commons: Home,
    drain: Home,
    /// Empty chunks, linked by `next`.
    unused: ChunkId,
    /// For the entries of the commons and the drain.
    cards: Cards,
    /// How many chunks there may be.
    limit: usize,
}

impl<T> Chunks<T> {
    /// So that each place is below `NIL`.
    const LIMIT: usize = (1 << 26) - 1;

    pub(super) const fn new() -> Self {
        Self {
            spots: Vec::new(),
            chunks: Vec::new(),
            commons: Home::EMPTY,
            drain: Home::EMPTY,
            unused: NIL,
            cards: Cards::new(),
            limit: Self::LIMIT,
        }
    }

    #[cfg(test)]
    pub(super) fn with_limit(limit: usize) -> Self {
        Self { limit, ..Self::new() }
    }

    pub(super) fn reserve(&mut self, chunks: usize) {
        self.spots.reserve_exact(chunks * CHUNK_PLACES);
        self.chunks.reserve_exact(chunks);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.spots.capacity() * size_of::<Spot<T>>()
            + self.chunks.capacity() * size_of::<Chunk>()
            + self.cards.heap_bytes()
    }

    /// Whether no chunk can be added.
    pub(super) fn is_exhausted(&self) -> bool {
        self.unused == NIL && self.chunks.len() >= self.limit
    }

    /// The place of the entry that `handle` is a claim on.
    #[inline]
    pub(super) fn find(&self, handle: Handle) -> Option<Place> {
        match self.spots.get(at(handle.place())) {
            Some(Spot::Taken(entry)) if handle.is_of(entry.generation) => Some(handle.place()),
            _ => None,
        }
    }

    /// The slot that the entry at a place lives in, or `COMMONS`, or `DRAIN`.
    #[inline]
    pub(super) fn owner(&self, id: ChunkId) -> SlotId {
        self.chunks[at(id)].owner
    }

    /// The entry at a place that is taken.
    #[inline]
    pub(super) fn entry(&self, place: Place) -> &Entry<T> {
        match &self.spots[at(place)] {
            Spot::Taken(entry) => entry,
            Spot::Hole { .. } => panic!("no entry is at place {place}"),
        }
    }

    /// Moves the deadline of the entry at a place.
    #[inline]
    pub(super) fn set_deadline_low(&mut self, place: Place, deadline_low: u32) {
        match &mut self.spots[at(place)] {
            Spot::Taken(entry) => entry.deadline_low = deadline_low,
            Spot::Hole { .. } => panic!("no entry is at place {place}"),
        }
    }

    /// Puts an entry into a home that has room.
    #[inline]
    pub(super) fn put(&mut self, home: &mut Home, entry: Entry<T>) -> Place {
        let place = home.hole;
        let spot = &mut self.spots[at(place)];
        let Spot::Hole { next, .. } = *spot else { panic!("place {place} is no hole") };
        *spot = Spot::Taken(entry);
        home.hole = next;
        self.chunks[at(chunk_of(place))].taken += 1;
        place
    }

    /// Puts an entry into the commons. Gives it back if there is no place left.
    pub(super) fn put_in_commons(&mut self, entry: Entry<T>) -> Result<Place, Entry<T>> {
        let mut commons = self.commons;
        if !commons.has_room() && !self.reclaim(&mut commons) && !self.add(&mut commons, COMMONS) {
            return Err(entry);
        }
        let place = self.put(&mut commons, entry);
        self.commons = commons;
        Ok(place)
    }

    /// Takes an entry out of the slot that it lives in.
    #[inline]
    pub(super) fn take_at_home(&mut self, handle: Handle, slots: &mut [Slot]) -> Taken<T> {
        let place = handle.place();
        let spot = match self.spots.get_mut(at(place)) {
            Some(spot @ Spot::Taken(_)) => spot,
            _ => return Taken::Stale,
        };
        if !matches!(spot, Spot::Taken(entry) if handle.is_of(entry.generation)) {
            return Taken::Stale;
        }
        let id = chunk_of(place);
        let chunk = &mut self.chunks[at(id)];
        let owner = chunk.owner;
        let Some(slot) = slots.get_mut(at(owner)) else {
            return Taken::Filed;
        };
        let next = slot.home.hole;
        let Spot::Taken(Entry { value, .. }) = mem::replace(spot, Spot::Hole { prev: NIL, next }) else {
            return Taken::Stale;
        };
        slot.home.hole = place;
        chunk.taken -= 1;
        let emptied = chunk.taken == 0;
        if let Some(Spot::Hole { prev, .. }) = self.spots.get_mut(at(next)) {
            *prev = place;
        }
        if emptied {
            self.give_back(&mut slot.home, id);
            return Taken::Emptied(value, owner);
        }
        Taken::Value(value)
    }

    /// Takes an entry out of the commons or the drain.
    #[inline]
    pub(super) fn take_filed(&mut self, place: Place) -> T {
        let Spot::Taken(Entry { value, .. }) = mem::replace(&mut self.spots[at(place)], Spot::FREE) else {
            panic!("no entry is at place {place}")
        };
        let id = chunk_of(place);
        let chunk = &mut self.chunks[at(id)];
        chunk.taken -= 1;
        let emptied = chunk.taken == 0;
        if chunk.owner == DRAIN {
            if emptied {
                self.cards.remove(id);
                self.drain.unlink(&mut self.chunks, id);
                self.put_away(id);
            }
        } else {
            let mut commons = self.commons;
            self.add_hole(&mut commons, place);
            if emptied {
                self.cards.remove(id);
                self.give_back(&mut commons, id);
            }
            self.commons = commons;
        }
        value
    }

    /// Gives a home one more chunk. False if there may be no more.
    pub(super) fn add(&mut self, home: &mut Home, owner: SlotId) -> bool {
        let mut id = self.unused;
        if id == NIL {
            if self.is_exhausted() {
                return false;
            }
            id = self.chunks.len() as ChunkId;
            self.chunks.push(Chunk::NEW);
            self.cards.add_chunk();
            self.spots.resize_with(at(places_of(id).end), || Spot::FREE);
        } else {
            self.unused = self.chunks[at(id)].next;
        }
        if owner == COMMONS {
            self.cards.add(id);
        }
        for place in places_of(id).rev() {
            self.add_hole(home, place);
        }
        home.link(&mut self.chunks, id);
        self.chunks[at(id)].owner = owner;
        true
    }

    /// Moves a chunk, with its entries where they are, from a slot to the drain.
    pub(super) fn drain(&mut self, id: ChunkId, from: &mut Home) {
        if at(self.chunks[at(id)].taken) < CHUNK_PLACES {
            for place in places_of(id) {
                if matches!(self.spots[at(place)], Spot::Hole { .. }) {
                    self.remove_hole(from, place);
                }
            }
        }
        from.unlink(&mut self.chunks, id);
        self.drain.link(&mut self.chunks, id);
        self.chunks[at(id)].owner = DRAIN;
        self.cards.add(id);
    }

    /// Moves a chunk from the drain to the commons, if the one that is there longest is half free:
    /// it may have an entry for long, which was rescheduled to a later deadline.
    fn reclaim(&mut self, commons: &mut Home) -> bool {
        let Some(id) = self.drain.first() else {
            return false;
        };
        if at(self.chunks[at(id)].taken) > CHUNK_PLACES / 2 {
            return false;
        }
        self.drain.unlink(&mut self.chunks, id);
        commons.link(&mut self.chunks, id);
        self.chunks[at(id)].owner = COMMONS;
        for place in places_of(id) {
            if matches!(self.spots[at(place)], Spot::Hole { .. }) {
                self.add_hole(commons, place);
            }
        }
        true
    }

    /// Takes an empty chunk away from its home.
    #[inline(never)]
    fn give_back(&mut self, home: &mut Home, id: ChunkId) {
        for place in places_of(id) {
            self.remove_hole(home, place);
        }
        home.unlink(&mut self.chunks, id);
        self.put_away(id);
    }

    fn put_away(&mut self, id: ChunkId) {
        self.chunks[at(id)].next = self.unused;
        self.unused = id;
    }

    fn add_hole(&mut self, home: &mut Home, place: Place) {
        let next = home.hole;
        if let Some(Spot::Hole { prev, .. }) = self.spots.get_mut(at(next)) {
            *prev = place;
        }
        self.spots[at(place)] = Spot::Hole { prev: NIL, next };
        home.hole = place;
    }

    fn remove_hole(&mut self, home: &mut Home, place: Place) {
        let Spot::Hole { prev, next } = self.spots[at(place)] else { panic!("place {place} is no hole") };
        if home.hole == place {
            home.hole = next;
        } else if let Spot::Hole { next: after, .. } = &mut self.spots[at(prev)] {
            *after = next;
        }
        if let Some(Spot::Hole { prev: before, .. }) = self.spots.get_mut(at(next)) {
            *before = prev;
        }
    }

    /// The place of a chunk with this index, if it is taken, and the low word of the deadline.
    #[inline]
    pub(super) fn deadline_low(&self, id: ChunkId, index: usize) -> Option<(Place, u32)> {
        let place = places_of(id).start + index as u32;
        match &self.spots[at(place)] {
            Spot::Taken(entry) => Some((place, entry.deadline_low)),
            Spot::Hole { .. } => None,
        }
    }

    /// The card of an entry in the commons or the drain.
    #[inline]
    pub(super) fn card(&self, place: Place) -> &Card {
        self.cards.card(chunk_of(place), at(place) % CHUNK_PLACES)
    }

    #[inline]
    pub(super) fn card_mut(&mut self, place: Place) -> &mut Card {
        self.cards.card_mut(chunk_of(place), at(place) % CHUNK_PLACES)
    }
}
