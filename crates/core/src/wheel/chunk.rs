//! [`Chunks`]: the memory of the entries.

#[cfg(test)]
mod invariants;

use alloc::vec::Vec;
use core::array;
use core::num::NonZeroU32;
use core::ops::Range;

use super::card::{Cards, Highs};
use super::home::{COMMONS, DRAIN, Home, Link};
use super::id::{CHUNK_PLACES, ChunkId, NIL, Place, Seat, SlotId, at};
use super::number::Number;
use super::spot::{Entry, Spot};
use super::tree::Slot;
use crate::Handle;

/// Limits for the number of free places. If there are more than `PLACES_FOR_EACH` places per entry, and `PLACES_FOR_ALL` more, the holes of
/// chunks with few entries are given to the commons.
pub(super) const PLACES_FOR_EACH: usize = 16;
pub(super) const PLACES_FOR_ALL: usize = 1 << 16;

const NO_ENTRY: &str = "an entry is at the place";

/// The owner of one chunk and the number of its entries. The entries themselves are in the spots.
struct Chunk {
    /// The slot that owns the chunk, or `COMMONS`, or `DRAIN`.
    owner: SlotId,
    /// The number of places of the chunk that have an entry.
    taken: u32,
}

/// The chunk of a place.
#[inline]
pub(super) const fn chunk_of(place: Place) -> ChunkId {
    place / CHUNK_PLACES as u32
}

/// The index of a place in its chunk.
#[inline]
const fn index_of(place: Place) -> usize {
    at(place) % CHUNK_PLACES
}

/// The places of a chunk.
const fn places_of(id: ChunkId) -> Range<Place> {
    let first = id * CHUNK_PLACES as u32;
    first..first + CHUNK_PLACES as u32
}

/// The result of [`Chunks::take_at_home`].
pub(super) enum Taken<T> {
    /// The value.
    Value(T),
    /// The value, and the slot that owned the chunk. The entry was the last one in this chunk.
    Emptied(T, SlotId),
    /// The entry is filed: it is in the commons or the drain.
    Filed,
    /// There is no such entry.
    Stale,
}

/// All chunks, and the entries in them.
///
/// Each chunk has one of four owners. A chunk of a slot has entries of this slot only. A chunk of the commons has entries of slots with few
/// entries. A chunk of the drain has entries of a slot that was opened. An unused chunk has no entries.
pub(super) struct Chunks<T> {
    spots: Vec<Spot<T>>,
    /// The chunks are stored apart from the spots and are small, so that they stay in the cache: every insertion and every cancel needs
    /// them.
    chunks: Vec<Chunk>,
    links: Vec<Link>,
    commons: Home,
    drain: Home,
    /// The first unused chunk. Unused chunks are empty and linked by `next`.
    unused: ChunkId,
    /// The cards of the entries in the commons and the drain. See `card`.
    cards: Cards,
    /// The largest number of chunks.
    limit: usize,
    /// The chunk that `next_sparse` examines next.
    hand: ChunkId,
    /// `PLACES_FOR_ALL`; tests set a smaller number.
    pub(super) spare: usize,
}

impl<T> Chunks<T> {
    /// The largest number of chunks: each place is then below `NIL`.
    pub(super) const LIMIT: usize = (1 << 26) - 1;

    pub(super) const fn new() -> Self {
        Self {
            spots: Vec::new(),
            chunks: Vec::new(),
            links: Vec::new(),
            commons: Home::EMPTY,
            drain: Home::EMPTY,
            unused: NIL,
            cards: Cards::new(),
            limit: Self::LIMIT,
            hand: 0,
            spare: PLACES_FOR_ALL,
        }
    }

    pub(super) fn reserve(&mut self, chunks: usize) {
        self.spots.reserve_exact(chunks * CHUNK_PLACES);
        self.chunks.reserve_exact(chunks);
        self.links.reserve_exact(chunks);
        self.cards.reserve(chunks);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.spots.capacity() * size_of::<Spot<T>>()
            + self.chunks.capacity() * size_of::<Chunk>()
            + self.links.capacity() * size_of::<Link>()
            + self.cards.heap_bytes()
    }

    /// Whether no chunk is unused and none can be added.
    pub(super) fn is_exhausted(&self) -> bool {
        self.unused == NIL && self.chunks.len() >= self.limit
    }

    /// Whether the number of places is so large, compared with the entries, that a hole in an existing chunk should be used before a
    /// chunk is added. True
    /// only if no chunk is unused.
    pub(super) fn is_sparse(&self, len: usize) -> bool {
        self.unused == NIL && self.chunks.len() * CHUNK_PLACES > PLACES_FOR_EACH * len + self.spare
    }

    /// Examines the next chunk in turn. Returns it if it has entries, but in at most 1 of `PLACES_FOR_EACH` places, and does not belong to
    /// the commons.
    pub(super) fn next_sparse(&mut self) -> Option<ChunkId> {
        let id = if at(self.hand) < self.chunks.len() { self.hand } else { 0 };
        self.hand = id + 1;
        let chunk = self.chunks.get(at(id))?;
        let few = 1..=(CHUNK_PLACES / PLACES_FOR_EACH) as u32;
        (few.contains(&chunk.taken) && chunk.owner != COMMONS).then_some(id)
    }

    /// Whether the commons have a free place.
    pub(super) fn has_room_in_commons(&self) -> bool {
        self.commons.has_room()
    }

    /// The place of the entry that `handle` is a claim on.
    pub(super) fn find(&self, handle: Handle) -> Option<Place> {
        let place = handle.place();
        self.spots.get(at(place))?.is_of(handle).then_some(place)
    }

    /// Sets the deadline of the entry that `handle` names, if the entry is in a slot and the new deadline is not nearer than the old one.
    /// The slot is opened before the old deadline, so the entry is found in time. Returns whether the deadline was set; `None` if the
    /// handle is stale.
    #[inline]
    pub(super) fn postpone(&mut self, handle: Handle, deadline_low: u32) -> Option<bool> {
        let spot = self.spots.get_mut(at(handle.place())).filter(|spot| spot.is_of(handle))?;
        let at_home = self.chunks[at(chunk_of(handle.place()))].owner < DRAIN;
        Some(at_home && spot.postpone(deadline_low))
    }

    /// The owner of a chunk: a slot, or `COMMONS`, or `DRAIN`.
    #[inline]
    pub(super) fn owner(&self, id: ChunkId) -> SlotId {
        self.chunks[at(id)].owner
    }

    /// The generation of the entry at a place. This function, `deadline_low` and `set_deadline_low` panic if the place has no entry.
    #[inline]
    pub(super) fn generation(&self, place: Place) -> NonZeroU32 {
        self.spots[at(place)].generation().expect(NO_ENTRY)
    }

    /// The low word of the deadline of the entry at a place.
    #[inline]
    pub(super) fn deadline_low(&self, place: Place) -> u32 {
        self.spots[at(place)].deadline_low().expect(NO_ENTRY)
    }

    /// Sets the low word of the deadline of the entry at a place.
    #[inline]
    pub(super) fn set_deadline_low(&mut self, place: Place, deadline_low: u32) {
        self.spots[at(place)].set_deadline_low(deadline_low);
    }

    /// Puts an entry into a hole of `home`, which must have one.
    #[inline]
    pub(super) fn put(&mut self, home: &mut Home, entry: Entry<T>) -> Place {
        let place = home.hole;
        home.hole = self.spots[at(place)].fill(entry);
        self.chunks[at(chunk_of(place))].taken += 1;
        place
    }

    /// Puts an entry into the commons. Gives the entry back if there is no free place.
    pub(super) fn put_in_commons(&mut self, entry: Entry<T>, highs: Highs) -> Result<Place, Entry<T>> {
        if !self.commons.has_room() && !self.reclaim() {
            let mut commons = self.commons;
            if !self.add(&mut commons, COMMONS) {
                return Err(entry);
            }
            self.commons = commons;
        }
        let mut commons = self.commons;
        let place = self.put(&mut commons, entry);
        self.commons = commons;
        self.cards.set_highs(chunk_of(place), index_of(place), highs);
        Ok(place)
    }

    /// Sets the deadline of an entry in the commons.
    pub(super) fn set_deadline(&mut self, place: Place, deadline: u64) {
        self.set_deadline_low(place, deadline as u32);
        let number = self.highs(place).number;
        let highs = Highs { deadline: (deadline >> 32) as u32, number };
        self.cards.set_highs(chunk_of(place), index_of(place), highs);
    }

    /// Takes an entry out of the slot that it is in.
    #[inline]
    pub(super) fn take_at_home(&mut self, handle: Handle, slots: &mut [Slot]) -> Taken<T> {
        let place = handle.place();
        let spot = match self.spots.get_mut(at(place)) {
            Some(spot) if spot.is_of(handle) => spot,
            _ => return Taken::Stale,
        };
        let id = chunk_of(place);
        let chunk = &mut self.chunks[at(id)];
        let Some(slot) = slots.get_mut(at(chunk.owner)) else {
            return Taken::Filed;
        };
        let next = slot.home.hole;
        let Some(value) = spot.take(next) else {
            return Taken::Stale;
        };
        slot.home.hole = place;
        chunk.taken -= 1;
        let Chunk { owner, taken } = *chunk;
        if let Some(next) = self.spots.get_mut(at(next)) {
            next.set_prev(place);
        }
        if taken == 0 {
            self.give_back(&mut slot.home, id);
            return Taken::Emptied(value, owner);
        }
        Taken::Value(value)
    }

    /// Takes an entry out of the commons or the drain.
    #[inline]
    pub(super) fn take_filed(&mut self, place: Place) -> T {
        let value = self.spots[at(place)].take(NIL).expect(NO_ENTRY);
        let id = chunk_of(place);
        let chunk = &mut self.chunks[at(id)];
        chunk.taken -= 1;
        let Chunk { owner, taken } = *chunk;
        if owner == DRAIN {
            if taken == 0 {
                self.cards.remove(id);
                self.drain.unlink(&mut self.links, id);
                self.put_away(id);
            }
        } else {
            let mut commons = self.commons;
            self.add_hole(&mut commons, place);
            if taken == 0 {
                self.cards.remove(id);
                self.give_back(&mut commons, id);
            }
            self.commons = commons;
        }
        value
    }

    /// Adds a chunk to a home that has no hole. False if no chunk can be added.
    pub(super) fn add(&mut self, home: &mut Home, owner: SlotId) -> bool {
        debug_assert!(!home.has_room(), "the holes there are would be forgotten");
        // The places of the new chunk become holes, linked in their order.
        let hole = |place: Place| Spot::hole(place.wrapping_sub(1), place + 1);
        let mut id = self.unused;
        if id == NIL {
            if self.is_exhausted() {
                return false;
            }
            id = self.chunks.len() as ChunkId;
            self.chunks.push(Chunk { owner, taken: 0 });
            self.links.push(Link::NONE);
            self.cards.add_chunk();
            self.spots.extend(places_of(id).map(hole));
        } else {
            self.unused = self.links[at(id)].next;
            self.chunks[at(id)].owner = owner;
            for place in places_of(id) {
                self.spots[at(place)] = hole(place);
            }
        }
        if owner == COMMONS {
            self.cards.add(id, None);
        }
        home.link(&mut self.links, id);
        let places = places_of(id);
        self.spots[at(places.end) - 1].set_next(NIL);
        home.hole = places.start;
        true
    }

    /// Moves a chunk from a slot to the drain; its entries stay at their places. `shared` are the high words of all its entries.
    pub(super) fn drain(&mut self, id: ChunkId, from: &mut Home, shared: Highs) {
        if at(self.chunks[at(id)].taken) < CHUNK_PLACES {
            for place in places_of(id) {
                if self.spots[at(place)].is_hole() {
                    self.remove_hole(from, place);
                }
            }
        }
        from.unlink(&mut self.links, id);
        self.drain.link(&mut self.links, id);
        self.chunks[at(id)].owner = DRAIN;
        self.cards.add(id, Some(shared));
    }

    /// Takes the chunk that has been in the drain for the longest time. If at least half of its places are free, moves it to the commons.
    /// Otherwise one entry that was rescheduled to a later deadline could keep the whole chunk for long.
    fn reclaim(&mut self) -> bool {
        match self.drain.first() {
            Some(id) if at(self.chunks[at(id)].taken) <= CHUNK_PLACES / 2 => {
                self.move_to_commons(id);
                true
            }
            _ => false,
        }
    }

    /// Moves a chunk from the drain to the commons, so that its holes can be used again.
    pub(super) fn move_to_commons(&mut self, id: ChunkId) {
        self.drain.unlink(&mut self.links, id);
        self.cards.separate(id);
        self.chunks[at(id)].owner = COMMONS;
        let mut commons = self.commons;
        commons.link(&mut self.links, id);
        for place in places_of(id) {
            if self.spots[at(place)].is_hole() {
                self.add_hole(&mut commons, place);
            }
        }
        self.commons = commons;
    }

    /// Makes an empty chunk unused.
    #[inline(never)]
    fn give_back(&mut self, home: &mut Home, id: ChunkId) {
        for place in places_of(id) {
            self.remove_hole(home, place);
        }
        home.unlink(&mut self.links, id);
        self.put_away(id);
    }

    fn put_away(&mut self, id: ChunkId) {
        self.links[at(id)].next = self.unused;
        self.unused = id;
    }

    fn add_hole(&mut self, home: &mut Home, place: Place) {
        let next = home.hole;
        if let Some(next) = self.spots.get_mut(at(next)) {
            next.set_prev(place);
        }
        self.spots[at(place)].set_next(next);
        home.hole = place;
    }

    fn remove_hole(&mut self, home: &mut Home, place: Place) {
        let (prev, next) = self.spots[at(place)].neighbours().expect("only holes are linked");
        if home.hole == place {
            home.hole = next;
        } else {
            self.spots[at(prev)].set_next(next);
        }
        if let Some(after) = self.spots.get_mut(at(next)) {
            after.set_prev(prev);
        }
    }

    /// Calls `file` for each entry of a chunk in the drain, with its place and the low word of its deadline, and stores the returned seat
    /// in the entry's card.
    #[inline]
    pub(super) fn file_drained(&mut self, id: ChunkId, mut file: impl FnMut(Place, u32) -> Seat) {
        let first = places_of(id).start;
        let spots = &self.spots[at(first)..at(first) + CHUNK_PLACES];
        // All cache lines of the chunk are loaded before the first is used, because most of them are not in the cache.
        let lows: [Option<u32>; CHUNK_PLACES] = array::from_fn(|index| spots[index].deadline_low());
        let seats = &mut self.cards.set_mut(id).seats;
        for ((place, low), seat) in (first..).zip(lows).zip(seats) {
            if let Some(low) = low {
                *seat = file(place, low);
            }
        }
    }

    /// The seat of the record of an entry in the commons or the drain.
    #[inline]
    pub(super) fn seat(&self, place: Place) -> Seat {
        self.cards.seat(chunk_of(place), index_of(place))
    }

    #[inline]
    pub(super) fn set_seat(&mut self, place: Place, seat: Seat) {
        self.cards.set_seat(chunk_of(place), index_of(place), seat);
    }

    /// The high words of an entry in the commons or the drain.
    #[inline]
    pub(super) fn highs(&self, place: Place) -> Highs {
        self.cards.highs(chunk_of(place), index_of(place))
    }

    /// The number of the insertion of an entry in the commons or the drain.
    #[inline]
    pub(super) fn number(&self, place: Place) -> Number {
        Number { high: self.highs(place).number, generation: self.generation(place) }
    }
}

/// For tests only.
#[cfg(test)]
impl<T> Chunks<T> {
    pub(super) fn with_limit(limit: usize) -> Self {
        Self { limit, ..Self::new() }
    }

    /// The number of chunks in the drain.
    pub(super) fn drained(&self) -> usize {
        self.drain.count()
    }

    /// The number of all chunks.
    pub(super) fn count(&self) -> ChunkId {
        self.chunks.len() as ChunkId
    }

    pub(super) fn taken_in(&self, id: ChunkId) -> usize {
        at(self.chunks[at(id)].taken)
    }

    /// The place with this index in a chunk, if it has an entry.
    pub(super) fn taken_at(&self, id: ChunkId, index: usize) -> Option<Place> {
        let place = places_of(id).start + index as u32;
        (!self.spots[at(place)].is_hole()).then_some(place)
    }
}
