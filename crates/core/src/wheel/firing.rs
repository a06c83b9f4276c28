//! Firing: the entries of one tick, in the order of their insertion.

use alloc::vec::Vec;
use core::mem;
use core::num::NonZeroU32;

use super::Wheel;
use super::filing::{Number, era};
use super::id::{NIL, Place, SlotId};

/// An entry that is due.
#[derive(Clone, Copy)]
pub(super) struct Due {
    number: Number,
    place: Place,
}

/// The entries of one tick while they are fired. When it is dropped, those that were not fired,
/// because another one panicked, are filed again.
struct Firing<'a, T> {
    wheel: &'a mut Wheel<T>,
    due: Vec<Due>,
    fired: usize,
}

impl<T> Wheel<T> {
    /// Fires what is due at the base, and returns how many that was.
    pub(super) fn fire_tick(&mut self, fire: &mut impl FnMut(u64, T)) -> usize {
        let mut due = mem::take(&mut self.due);
        self.take_off(&mut due);
        let tick = self.tree.base();
        let mut firing = Firing { wheel: self, due, fired: 0 };
        while let Some(&Due { place, .. }) = firing.due.get(firing.fired) {
            firing.fired += 1;
            let wheel = &mut *firing.wheel;
            let value = wheel.chunks.take_filed(place);
            wheel.len -= 1;
            fire(tick, value);
        }
        firing.fired
    }

    /// Takes what is due at the base off the lists, and brings it into order.
    fn take_off(&mut self, due: &mut Vec<Due>) {
        if let Some(id) = self.tree.tick_slot() {
            self.take_off_all(id, due);
            self.tree.prune(id);
        }
        self.take_off_few(due);
        if !due.is_sorted_by_key(|due| due.number) {
            due.sort_unstable_by_key(|due| due.number);
        }
    }

    /// The slot is that of one tick: all of its entries are due.
    fn take_off_all(&mut self, id: SlotId, due: &mut Vec<Due>) {
        let list = &mut self.tree.slot_mut(id).list;
        let none = Due { number: Number { era: 0, generation: NonZeroU32::MIN }, place: NIL };
        due.resize(list.len(), none);
        // No card has to be looked at before the numbers outgrow one word.
        let one_era = era(self.inserted) == 0;
        self.blocks.drain(list, |index, place| {
            let generation = self.chunks.entry(place).generation;
            let era = if one_era { 0 } else { self.chunks.card(place).era };
            due[index] = Due { number: Number { era, generation }, place };
        });
    }

    /// Those for which no ring was made.
    fn take_off_few(&mut self, due: &mut Vec<Due>) {
        let tick_low = self.tree.base() as u32;
        let Some(slot) = self.tree.few_mut() else {
            return;
        };
        if slot.min_low > tick_low {
            return;
        }
        slot.min_low = u32::MAX;
        let first = due.len();
        for &place in self.blocks.newest(&slot.list) {
            let entry = self.chunks.entry(place);
            if entry.deadline_low == tick_low {
                let number = Number { era: self.chunks.card(place).era, generation: entry.generation };
                due.push(Due { number, place });
            } else {
                slot.min_low = slot.min_low.min(entry.deadline_low);
            }
        }
        for &Due { place, .. } in &due[first..] {
            let seat = self.chunks.card(place).seat;
            if let Some(moved) = self.blocks.remove(&mut slot.list, seat) {
                self.chunks.card_mut(moved).seat = seat;
            }
        }
    }
}

impl<T> Drop for Firing<'_, T> {
    fn drop(&mut self) {
        let mut due = mem::take(&mut self.due);
        let tick = self.wheel.tree.base();
        for Due { number, place } in due.drain(..).skip(self.fired) {
            let id = self.wheel.tree.slot_of(tick);
            self.wheel.file(id, place, tick, number.era);
        }
        self.wheel.due = due;
    }
}
