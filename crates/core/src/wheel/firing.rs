//! Firing: the entries of one tick fire in the order of their insertion.

use alloc::vec::Vec;
use core::mem;

use super::Wheel;
use super::id::{Due, NIL, SlotId};

/// The entries of one tick while they fire. If `fire` panics, dropping this value files the entries again that did not fire.
struct Firing<'a, T> {
    wheel: &'a mut Wheel<T>,
    due: Vec<Due>,
    fired: usize,
}

impl<T> Wheel<T> {
    /// Fires the entries that are due at the base, and returns their number.
    pub(super) fn fire_tick(&mut self, fire: &mut impl FnMut(u64, T)) -> usize {
        let mut due = mem::take(&mut self.due);
        self.take_off(&mut due);
        let tick = self.tree.base();
        let mut firing = Firing { wheel: self, due, fired: 0 };
        while let Some(&Due { place, .. }) = firing.due.get(firing.fired) {
            firing.fired += 1;
            fire(tick, firing.wheel.chunks.take_filed(place));
        }
        firing.fired
    }

    /// Removes the entries that are due at the base from the lists, and sorts them.
    fn take_off(&mut self, due: &mut Vec<Due>) {
        if let Some(id) = self.tree.tick_slot() {
            self.take_off_all(id, due);
            self.tree.prune(id);
        }
        self.take_off_few(due);
        if !due.is_sorted_by_key(|due| due.key) {
            due.sort_unstable_by_key(|due| due.key);
        }
    }

    /// Removes all entries of a slot that spans one tick: all of them are due.
    fn take_off_all(&mut self, id: SlotId, due: &mut Vec<Due>) {
        let list = &mut self.tree.slot_mut(id).list;
        due.resize(list.len(), Due { key: 0, place: NIL });
        // As long as all insertion numbers fit into one word, the generation is the whole number, and no card is read.
        let one_word = self.next.high == 0;
        self.blocks.drain(list, |index, place| {
            let key = match one_word {
                true => u64::from(self.chunks.generation(place).get()),
                false => self.chunks.number(place).key(),
            };
            due[index] = Due { key, place };
        });
    }

    /// Removes the due entries from the slot of the few.
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
            let deadline_low = self.chunks.deadline_low(place);
            if deadline_low == tick_low {
                due.push(Due { key: self.chunks.number(place).key(), place });
            } else {
                slot.min_low = slot.min_low.min(deadline_low);
            }
        }
        for &Due { place, .. } in &due[first..] {
            let seat = self.chunks.seat(place);
            if let Some(moved) = self.blocks.remove(&mut slot.list, seat) {
                self.chunks.set_seat(moved, seat);
            }
        }
    }
}

impl<T> Drop for Firing<'_, T> {
    fn drop(&mut self) {
        self.wheel.len -= self.fired;
        if self.fired < self.due.len() {
            self.file_rest();
        }
        self.due.clear();
        self.wheel.due = mem::take(&mut self.due);
    }
}

impl<T> Firing<'_, T> {
    #[cold]
    fn file_rest(&mut self) {
        let tick = self.wheel.tree.base();
        for Due { place, .. } in self.due.drain(..).skip(self.fired) {
            let id = self.wheel.tree.slot_of(tick);
            self.wheel.file(id, place, tick as u32);
        }
    }
}
