//! [`Level`]: a ring of 256 slots, each a list of entries.

use alloc::vec::Vec;

use super::bits::Bits;
use super::slab::{NIL, Slab};

/// Slots of a level: one byte of the deadline chooses.
pub(super) const SLOTS: usize = 256;

/// 64 entries are looked at, at most, to make a slot's bound exact again after its nearest entry
/// left: cheap, and enough to keep sparse wheels exact.
const REFRESH_STEPS: usize = 64;

/// A list of entries by place. Empty: head and tail are `NIL`.
#[derive(Clone, Copy)]
struct Slot {
    head: u32,
    tail: u32,
    /// Never after the nearest deadline in the list, and exact unless an entry left the list
    /// since. Meaningless while the slot is empty.
    bound: u64,
}

/// One ring of slots.
///
/// Invariants: a slot's bit in `occupied` is set if and only if its list is not empty. A slot that
/// is not in `disordered` has its list in order of insertion.
///
/// A list only gets out of order by a reschedule: a new entry has the highest number of all, and a
/// cascade goes into empty slots, in order.
pub(super) struct Level {
    occupied: Bits,
    disordered: Bits,
    slots: [Slot; SLOTS],
}

impl Level {
    pub(super) const EMPTY: Self = Self {
        occupied: Bits::EMPTY,
        disordered: Bits::EMPTY,
        slots: [Slot { head: NIL, tail: NIL, bound: u64::MAX }; SLOTS],
    };

    pub(super) fn is_empty(&self) -> bool {
        self.occupied.is_empty()
    }

    /// The bound of the first occupied slot: the nearest deadline, or a little before it.
    pub(super) fn first_bound(&self) -> Option<u64> {
        let slot = self.occupied.first()?;
        assert_ne!(self.slots[slot].head, NIL, "slot {slot} has its bit set, but no entry");
        Some(self.slots[slot].bound)
    }

    /// Puts the entry in `place`, which is in no list, at the end of a slot's list. O(1).
    pub(super) fn append<T>(&mut self, slab: &mut Slab<T>, slot: usize, place: u32) {
        let list = &mut self.slots[slot];
        let entry = slab.entry_mut(place);
        let (deadline, seq) = (entry.deadline, entry.seq);
        entry.prev = list.tail;
        entry.next = NIL;
        if list.tail == NIL {
            list.head = place;
            list.bound = deadline;
            self.occupied.set(slot);
        } else {
            let tail = slab.entry_mut(list.tail);
            tail.next = place;
            if tail.seq > seq {
                self.disordered.set(slot);
            }
            list.bound = list.bound.min(deadline);
        }
        list.tail = place;
    }

    /// Takes the entry in `place` out of a slot's list. O(1), and a bounded walk if no other entry
    /// was nearer.
    pub(super) fn remove<T>(&mut self, slab: &mut Slab<T>, slot: usize, place: u32) {
        let list = &mut self.slots[slot];
        let entry = slab.entry(place);
        let (deadline, prev, next) = (entry.deadline, entry.prev, entry.next);
        if prev == NIL {
            list.head = next;
        } else {
            slab.entry_mut(prev).next = next;
        }
        if next == NIL {
            list.tail = prev;
        } else {
            slab.entry_mut(next).prev = prev;
        }
        if list.head == NIL {
            self.occupied.clear(slot);
            self.disordered.clear(slot);
        } else if deadline == list.bound {
            self.refresh(slab, slot);
        }
    }

    /// Gives the entry in `place`, which is in a slot's list, another deadline of the same slot.
    /// It keeps its place in the list. O(1), and a bounded walk if no other entry was nearer.
    pub(super) fn adjust<T>(&mut self, slab: &mut Slab<T>, slot: usize, place: u32, deadline: u64) {
        let list = &mut self.slots[slot];
        let old = core::mem::replace(&mut slab.entry_mut(place).deadline, deadline);
        if deadline <= list.bound {
            list.bound = deadline;
        } else if old == list.bound {
            self.refresh(slab, slot);
        }
    }

    /// Empties a slot without touching its entries and returns the first of them, which is linked
    /// to the rest.
    pub(super) fn take(&mut self, slot: usize) -> Option<u32> {
        if !self.occupied.contains(slot) {
            return None;
        }
        let list = &mut self.slots[slot];
        let head = core::mem::replace(&mut list.head, NIL);
        list.tail = NIL;
        self.occupied.clear(slot);
        self.disordered.clear(slot);
        Some(head)
    }

    /// Takes the first entry out of a slot's list. For a slot of one tick only: the bound stays.
    pub(super) fn pop_front<T>(&mut self, slab: &mut Slab<T>, slot: usize) -> Option<u32> {
        let list = &mut self.slots[slot];
        if list.head == NIL {
            return None;
        }
        let place = list.head;
        list.head = slab.entry(place).next;
        if list.head == NIL {
            list.tail = NIL;
            self.occupied.clear(slot);
            self.disordered.clear(slot);
        } else {
            slab.entry_mut(list.head).prev = NIL;
        }
        Some(place)
    }

    /// Brings a slot's list into the order of insertion. O(k log k) and 16 bytes for each of its k
    /// entries if a reschedule has disturbed the order, O(1) if not.
    pub(super) fn put_in_order<T>(&mut self, slab: &mut Slab<T>, slot: usize) {
        if !self.disordered.contains(slot) {
            return;
        }
        let mut order = Vec::new();
        let mut place = self.slots[slot].head;
        while place != NIL {
            let entry = slab.entry(place);
            order.push((entry.seq, place));
            place = entry.next;
        }
        order.sort_unstable();
        let mut tail = NIL;
        for &(_, place) in order.iter() {
            slab.entry_mut(place).prev = tail;
            if tail == NIL {
                self.slots[slot].head = place;
            } else {
                slab.entry_mut(tail).next = place;
            }
            tail = place;
        }
        slab.entry_mut(tail).next = NIL;
        self.slots[slot].tail = tail;
        self.disordered.clear(slot);
    }

    /// Makes a slot's bound exact again, if that takes a short walk only. The list is not empty.
    fn refresh<T>(&mut self, slab: &Slab<T>, slot: usize) {
        let list = &mut self.slots[slot];
        let mut nearest = u64::MAX;
        let mut place = list.head;
        for _ in 0..REFRESH_STEPS {
            let entry = slab.entry(place);
            nearest = nearest.min(entry.deadline);
            place = entry.next;
            if place == NIL || nearest == list.bound {
                list.bound = nearest;
                return;
            }
        }
    }
}
