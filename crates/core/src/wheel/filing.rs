//! Where an entry lives: taking it in, and taking it out.

use core::num::NonZeroU32;

use super::Wheel;
use super::card::Card;
use super::chunk::{CHUNK_PLACES, Entry, Taken, chunk_of};
use super::home::{COMMONS, DRAIN};
use super::id::{Place, SlotId, at};
use super::tree::{FEW, Slot};
use crate::Handle;

/// A slot with so many entries takes no more, but is opened, so that what is left to do when its
/// time comes has a bound.
const MANY: usize = 1 << 20;

/// The number of an insertion, in two words. The order of numbers is the order of insertions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number {
    pub(super) era: u32,
    pub(super) generation: NonZeroU32,
}

impl Number {
    /// The number of the insertion after the one with this count.
    #[inline]
    pub(super) const fn after(count: u64) -> Self {
        let next = count + 1;
        match NonZeroU32::new(next as u32) {
            Some(generation) => Self { era: era(next), generation },
            None => Self { era: era(next), generation: NonZeroU32::MIN },
        }
    }

    #[inline]
    pub(super) const fn count(self) -> u64 {
        (self.era as u64) << 32 | self.generation.get() as u64
    }
}

/// The high word of a count of insertions.
pub(super) const fn era(count: u64) -> u32 {
    (count >> 32) as u32
}

impl<T> Wheel<T> {
    /// Takes an entry in. Gives the value back if there is no place left.
    #[inline(always)]
    pub(super) fn take_in(&mut self, number: Number, deadline: u64, value: T) -> Result<Handle, T> {
        let id = self.tree.slot_of(deadline);
        let slot = self.tree.slot_mut(id);
        let generation = number.generation;
        let deadline_low = deadline as u32;
        let place = if slot.era == number.era && slot.home.has_room() {
            if deadline_low < slot.min_low {
                slot.min_low = deadline_low;
            }
            self.chunks.put(&mut slot.home, Entry { generation, deadline_low, value })
        } else {
            self.take_in_anew(id, number, deadline, value)?
        };
        self.len += 1;
        Ok(Handle::new(place, generation))
    }

    /// The same, if the slot has no chunk with room for it.
    #[inline(never)]
    fn take_in_anew(&mut self, mut id: SlotId, number: Number, deadline: u64, value: T) -> Result<Place, T> {
        let entry = Entry { generation: number.generation, deadline_low: deadline as u32, value };
        loop {
            let level = self.tree.level(id);
            let slot = self.tree.slot(id);
            if level == 0 || weight(slot) < FEW {
                break;
            }
            if self.tree.distance(deadline, level) > 1 {
                if slot.home.count() == 0 || slot.era == number.era {
                    return self.take_in_at_home(id, number.era, entry);
                }
                break;
            }
            // Its time is the next to come: it is too late to let it grow.
            self.tree.open(id);
            id = self.tree.finest_in(id, deadline);
        }
        match self.chunks.put_in_commons(entry) {
            Ok(place) => {
                self.file(id, place, deadline, number.era);
                Ok(place)
            }
            Err(entry) => {
                self.tree.prune(id);
                Err(entry.value)
            }
        }
    }

    /// Takes an entry into a new chunk of its slot.
    fn take_in_at_home(&mut self, id: SlotId, era: u32, entry: Entry<T>) -> Result<Place, T> {
        let slot = self.tree.slot_mut(id);
        if !self.chunks.add(&mut slot.home, id) {
            return Err(entry.value);
        }
        slot.era = era;
        slot.min_low = slot.min_low.min(entry.deadline_low);
        let place = self.chunks.put(&mut slot.home, entry);
        self.tree.occupy(id);
        self.open_if_heavy(id);
        Ok(place)
    }

    /// Writes an entry of the commons or the drain into the list of its slot.
    #[inline]
    pub(super) fn file(&mut self, id: SlotId, place: Place, deadline: u64, era: u32) {
        let slot = self.tree.slot_mut(id);
        slot.min_low = slot.min_low.min(deadline as u32);
        let seat = self.blocks.push(&mut slot.list, id, place);
        let len = slot.list.len();
        *self.chunks.card_mut(place) = Card { seat, high: (deadline >> 32) as u32, era };
        if len == 1 {
            self.tree.occupy(id);
        } else if len >= MANY {
            self.open_if_heavy(id);
        }
    }

    fn open_if_heavy(&mut self, id: SlotId) {
        if weight(self.tree.slot(id)) >= MANY && self.tree.level(id) > 0 {
            self.tree.open(id);
        }
    }

    /// Takes the entry that `handle` is a claim on out, and returns its value.
    #[inline]
    pub(super) fn take_out(&mut self, handle: Handle) -> Option<T> {
        let value = match self.chunks.take_at_home(handle, &mut self.tree.slots) {
            Taken::Value(value) => value,
            Taken::Emptied(value, id) => {
                self.tree.prune(id);
                value
            }
            Taken::Filed => self.take_out_filed(handle.place()),
            Taken::Stale => return None,
        };
        self.len -= 1;
        Some(value)
    }

    #[inline(never)]
    fn take_out_filed(&mut self, place: Place) -> T {
        self.unfile(place);
        self.chunks.take_filed(place)
    }

    /// Takes the record of an entry of the commons or the drain out of its list.
    fn unfile(&mut self, place: Place) {
        let seat = self.chunks.card(place).seat;
        let id = self.blocks.owner(seat);
        let slot = self.tree.slot_mut(id);
        if let Some(moved) = self.blocks.remove(&mut slot.list, seat) {
            self.chunks.card_mut(moved).seat = seat;
        }
        if slot.list.len() == 0 {
            self.tree.prune(id);
        }
    }

    /// Moves an entry to another deadline, and returns its handle, which may be a new one. `None`
    /// if there is no such entry.
    #[inline]
    pub(super) fn move_to(&mut self, handle: Handle, deadline: u64) -> Option<Handle> {
        let place = self.chunks.find(handle)?;
        let owner = self.chunks.owner(chunk_of(place));
        if owner < DRAIN && self.tree.finds(owner, deadline) {
            self.chunks.set_deadline_low(place, deadline as u32);
            return Some(handle);
        }
        self.move_elsewhere(handle, owner, deadline)
    }

    /// The same, where the entry is not found in its slot, or is in none.
    #[inline(never)]
    fn move_elsewhere(&mut self, handle: Handle, owner: SlotId, deadline: u64) -> Option<Handle> {
        let place = handle.place();
        let era = match self.tree.slots.get(at(owner)) {
            Some(slot) => slot.era,
            None => self.chunks.card(place).era,
        };
        if !self.chunks.is_exhausted() {
            let value = self.take_out(handle)?;
            return self.take_in(Number { era, generation: handle.generation() }, deadline, value).ok();
        }
        // There may be no room anywhere else: the entry stays where it is.
        if owner < DRAIN {
            self.evict(chunk_of(place));
            self.tree.prune(owner);
        }
        self.unfile(place);
        self.chunks.set_deadline_low(place, deadline as u32);
        let id = self.tree.slot_of(deadline);
        self.file(id, place, deadline, era);
        Some(handle)
    }

    /// The deadline of an entry.
    pub(super) fn deadline_at(&self, place: Place) -> u64 {
        let high = match self.chunks.owner(chunk_of(place)) {
            COMMONS | DRAIN => self.chunks.card(place).high,
            owner => self.tree.high(owner),
        };
        u64::from(high) << 32 | u64::from(self.chunks.entry(place).deadline_low)
    }
}

/// About how many entries are in the slot itself: never fewer than there are.
pub(super) fn weight(slot: &Slot) -> usize {
    slot.list.len() + slot.home.count() * CHUNK_PLACES
}
