//! Where an entry is stored: functions that add, remove and move entries.

use super::Wheel;
use super::card::Highs;
use super::chunk::{Taken, chunk_of};
use super::home::{COMMONS, DRAIN};
use super::id::{CHUNK_PLACES, Place, SlotId, at};
use super::number::Number;
use super::spot::Entry;
use super::tree::{FEW, Slot};
use crate::Handle;

/// The number of chunks that one sweep examines. A sweep runs before a chunk is added to a wheel that has many places compared with its
/// entries.
const CHUNKS_IN_SWEEP: usize = 8;

impl<T> Wheel<T> {
    /// Adds an entry. Gives the value back if there is no free place.
    #[inline(always)]
    pub(super) fn take_in(&mut self, number: Number, deadline: u64, value: T) -> Result<Handle, T> {
        let generation = number.generation;
        let deadline_low = deadline as u32;
        let place = match self.tree.ring_slot(deadline) {
            Some(slot) if slot.era == number.high && slot.home.has_room() => {
                if deadline_low < slot.min_low {
                    slot.min_low = deadline_low;
                }
                self.chunks.put(&mut slot.home, Entry { generation, deadline_low, value })
            }
            _ => self.take_in_anew(number, deadline, value)?,
        };
        self.len += 1;
        Ok(Handle::new(place, generation))
    }

    /// Adds an entry if its slot is in no ring, has no hole, or has entries with another high word of the number.
    #[inline(never)]
    fn take_in_anew(&mut self, number: Number, deadline: u64, value: T) -> Result<Place, T> {
        let sparse = self.chunks.is_sparse(self.len);
        if sparse {
            self.sweep();
        }
        let shared = sparse && self.chunks.has_room_in_commons();
        let mut id = self.tree.slot_of(deadline);
        let entry = Entry { generation: number.generation, deadline_low: deadline as u32, value };
        loop {
            let level = self.tree.level(id);
            let slot = self.tree.slot(id);
            let same_era = slot.era == number.high;
            if same_era && slot.home.has_room() {
                return self.take_in_at_home(id, number.high, entry);
            }
            if level == 0 || weight(slot) < FEW || shared {
                break;
            }
            if self.tree.distance(deadline, level) > 1 {
                if slot.home.count() == 0 || same_era {
                    return self.take_in_at_home(id, number.high, entry);
                }
                break;
            }
            // The base reaches this slot next, so the slot is opened and not filled further.
            self.tree.open(id);
            id = self.tree.finest_in(id, deadline);
        }
        let highs = Highs { deadline: (deadline >> 32) as u32, number: number.high };
        match self.chunks.put_in_commons(entry, highs) {
            Ok(place) => {
                self.file(id, place, deadline as u32);
                self.sort_out_few();
                Ok(place)
            }
            Err(entry) => {
                self.tree.prune(id);
                Err(entry.value)
            }
        }
    }

    /// Examines some chunks, and gives the holes of chunks with few entries to the commons. The entries of these chunks keep their places
    /// and are filed.
    #[cold]
    fn sweep(&mut self) {
        for _ in 0..CHUNKS_IN_SWEEP {
            let Some(chunk) = self.chunks.next_sparse() else {
                continue;
            };
            let owner = self.chunks.owner(chunk);
            if owner < DRAIN {
                self.evict(chunk);
                self.tree.prune(owner);
            }
            self.chunks.move_to_commons(chunk);
        }
        self.sort_out_few();
    }

    /// Puts an entry into a chunk of its slot. If there is no hole, the slot gets another chunk.
    fn take_in_at_home(&mut self, id: SlotId, era: u32, entry: Entry<T>) -> Result<Place, T> {
        let slot = self.tree.slot_mut(id);
        if !slot.home.has_room() && !self.chunks.add(&mut slot.home, id) {
            return Err(entry.value);
        }
        slot.era = era;
        slot.min_low = slot.min_low.min(entry.deadline_low);
        let place = self.chunks.put(&mut slot.home, entry);
        self.tree.occupy(id);
        if weight(self.tree.slot(id)) >= self.tree.many {
            self.tree.open(id);
        }
        Ok(place)
    }

    /// Adds the record of an entry of the commons or the drain to the list of its slot.
    #[inline]
    pub(super) fn file(&mut self, id: SlotId, place: Place, deadline_low: u32) {
        let seat = self.tree.file(&mut self.blocks, id, place, deadline_low);
        self.chunks.set_seat(place, seat);
    }

    /// Removes the entry that `handle` names, and returns its value.
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

    /// Removes the record of an entry of the commons or the drain from its list.
    fn unfile(&mut self, place: Place) {
        let seat = self.chunks.seat(place);
        let id = self.blocks.owner(seat);
        let slot = self.tree.slot_mut(id);
        if let Some(moved) = self.blocks.remove(&mut slot.list, seat) {
            self.chunks.set_seat(moved, seat);
        }
        if slot.list.len() == 0 {
            self.tree.prune(id);
        }
    }

    /// Moves an entry to another deadline, and returns its handle, which may be a new one. `None` if the handle is stale.
    #[inline]
    pub(super) fn move_to(&mut self, handle: Handle, deadline: u64) -> Option<Handle> {
        if self.tree.is_all_in_high_of(deadline) && self.chunks.postpone(handle, deadline as u32)? {
            return Some(handle);
        }
        let place = self.chunks.find(handle)?;
        let owner = self.chunks.owner(chunk_of(place));
        if owner < DRAIN && self.tree.finds(owner, deadline) {
            self.chunks.set_deadline_low(place, deadline as u32);
            return Some(handle);
        }
        self.move_elsewhere(handle, owner, deadline)
    }

    /// Moves an entry that is in no slot, or whose slot would not be opened in time for the new deadline.
    #[inline(never)]
    fn move_elsewhere(&mut self, handle: Handle, owner: SlotId, deadline: u64) -> Option<Handle> {
        let place = handle.place();
        if !self.chunks.is_exhausted() {
            let high = match self.tree.slots.get(at(owner)) {
                Some(slot) => slot.era,
                None => self.chunks.highs(place).number,
            };
            let value = self.take_out(handle)?;
            let moved = self.take_in(Number { high, generation: handle.generation() }, deadline, value);
            let Ok(handle) = moved else { panic!("there was room for one more chunk") };
            return Some(handle);
        }
        // There may be no free place in another chunk, so the entry stays at its place.
        if owner < DRAIN {
            self.evict(chunk_of(place));
            self.tree.prune(owner);
        }
        if self.chunks.owner(chunk_of(place)) == DRAIN {
            self.chunks.move_to_commons(chunk_of(place));
        }
        self.unfile(place);
        self.chunks.set_deadline(place, deadline);
        let id = self.tree.slot_of(deadline);
        self.file(id, place, deadline as u32);
        Some(handle)
    }

    /// The deadline of an entry.
    pub(super) fn deadline_at(&self, place: Place) -> u64 {
        let high = match self.chunks.owner(chunk_of(place)) {
            COMMONS | DRAIN => self.chunks.highs(place).deadline,
            owner => self.tree.high(owner),
        };
        u64::from(high) << 32 | u64::from(self.chunks.deadline_low(place))
    }
}

/// An upper bound of the number of entries in the slot itself, without its finer slots.
#[inline]
pub(super) fn weight(slot: &Slot) -> usize {
    slot.list.len() + slot.home.count() * CHUNK_PLACES
}
