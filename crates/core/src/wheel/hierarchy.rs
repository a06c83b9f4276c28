//! [`Hierarchy`]: which level and slot an entry belongs to, and what moves when time does.

use alloc::boxed::Box;

use super::level::{Level, SLOTS};
use super::slab::{NIL, Slab};

/// One level for each byte of a deadline.
const LEVELS: usize = 8;

/// Eight levels of 256 slots, relative to a base.
///
/// An entry belongs to the level of the highest byte in which its deadline differs from the base,
/// and there to the slot that this byte of the deadline names:
///
/// | base 0x0102F0 and deadline | differ in byte | level | slot |
/// |---|---|---|---|
/// | 0x0102F0 | none | 0 | 0xF0 |
/// | 0x0102FF | 0 | 0 | 0xFF |
/// | 0x010300 | 1 | 1 | 0x03 |
/// | 0x0203FF | 2 | 2 | 0x02 |
/// | 0xFFFF_FFFF_FFFF_FFFE | 7 | 7 | 0xFF |
///
/// Invariants:
/// - no pending deadline is before the base. So everything on a level is nearer than everything on
///   the levels above it, and a slot's entries are nearer than those of the slots after it: the
///   nearest deadline is in the first slot of the first level that has any;
/// - level 0 has its bit in `occupied` if and only if it has an occupied slot, and so on.
///
/// Levels are made when they are first needed, 4 KB each, and stay. A change of the base by any
/// distance opens one slot at most, which is why idle time costs nothing.
pub(super) struct Hierarchy {
    base: u64,
    occupied: u8,
    levels: [Option<Box<Level>>; LEVELS],
}

impl Hierarchy {
    pub(super) const fn new(base: u64) -> Self {
        Self { base, occupied: 0, levels: [const { None }; LEVELS] }
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.levels.iter().flatten().count() * size_of::<Level>()
    }

    /// Links the entry in `place`, which is in no list. O(1).
    pub(super) fn link<T>(&mut self, slab: &mut Slab<T>, place: u32) {
        let (level, slot) = self.locate(slab.entry(place).deadline);
        self.levels[level].get_or_insert_with(|| Box::new(Level::EMPTY)).append(slab, slot, place);
        self.occupied |= 1 << level;
    }

    /// Takes the entry in `place`, which is linked, out of its list.
    pub(super) fn unlink<T>(&mut self, slab: &mut Slab<T>, place: u32) {
        let (level, slot) = self.locate(slab.entry(place).deadline);
        self.ring(level).remove(slab, slot, place);
        self.settle(level);
    }

    /// Moves the entry in `place`, which is linked, to another deadline.
    pub(super) fn relink<T>(&mut self, slab: &mut Slab<T>, place: u32, deadline: u64) {
        let (level, slot) = self.locate(slab.entry(place).deadline);
        if self.locate(deadline) == (level, slot) {
            self.ring(level).adjust(slab, slot, place, deadline);
        } else {
            self.unlink(slab, place);
            slab.entry_mut(place).deadline = deadline;
            self.link(slab, place);
        }
    }

    /// A tick that is not after the nearest deadline, and not before the base. `None` if nothing
    /// is linked. O(1).
    pub(super) fn nearest(&self) -> Option<u64> {
        self.levels.get(self.occupied.trailing_zeros() as usize)?.as_ref()?.first_bound()
    }

    /// Moves the base to a later tick, before which nothing is due. Opens the slot that the new
    /// base is in: O(its entries), and each entry goes down by at least one level.
    pub(super) fn move_base<T>(&mut self, slab: &mut Slab<T>, base: u64) {
        debug_assert!(base >= self.base, "base {} went back to {base}", self.base);
        debug_assert!(
            self.nearest().is_none_or(|nearest| nearest >= base),
            "base {base} would pass the nearest deadline, not before {:?}",
            self.nearest()
        );
        let (level, slot) = self.locate(base);
        self.base = base;
        if level == 0 || self.occupied & 1 << level == 0 {
            return;
        }
        let Some(mut place) = self.ring(level).take(slot) else {
            return;
        };
        self.settle(level);
        while place != NIL {
            let next = slab.entry(place).next;
            self.link(slab, place);
            place = next;
        }
    }

    /// Brings the entries due at the base into the order of insertion.
    pub(super) fn put_due_in_order<T>(&mut self, slab: &mut Slab<T>) {
        let (level, slot) = self.locate(self.base);
        if self.occupied & 1 << level != 0 {
            self.ring(level).put_in_order(slab, slot);
        }
    }

    /// Takes the next of the entries due at the base out of its list.
    pub(super) fn pop_due<T>(&mut self, slab: &mut Slab<T>) -> Option<u32> {
        let (level, slot) = self.locate(self.base);
        if self.occupied & 1 << level == 0 {
            return None;
        }
        let place = self.ring(level).pop_front(slab, slot);
        self.settle(level);
        place
    }

    /// The level and slot of a deadline.
    fn locate(&self, deadline: u64) -> (usize, usize) {
        // The lowest bit is set to make level 0 out of no difference.
        let level = ((deadline ^ self.base) | 1).ilog2() as usize / 8;
        let slot = (deadline >> (8 * level)) as usize % SLOTS;
        (level, slot)
    }

    /// A level that is known to be there.
    fn ring(&mut self, level: usize) -> &mut Level {
        self.levels[level]
            .as_mut()
            .unwrap_or_else(|| panic!("an entry is on level {level}, which was never made"))
    }

    /// Clears a level's bit if its last entry has left.
    fn settle(&mut self, level: usize) {
        if self.ring(level).is_empty() {
            self.occupied &= !(1 << level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_differing_byte_decides() {
        let hierarchy = Hierarchy::new(0x0102F0);
        let table = [
            (0x0102F0, (0, 0xF0)),
            (0x0102FF, (0, 0xFF)),
            (0x010300, (1, 0x03)),
            (0x0203FF, (2, 0x02)),
            (u64::MAX - 1, (7, 0xFF)),
        ];
        for (deadline, place) in table {
            assert_eq!(hierarchy.locate(deadline), place, "deadline {deadline:#x}");
        }
    }

    #[test]
    fn an_empty_hierarchy_has_no_levels_and_jumps_for_free() {
        let mut hierarchy = Hierarchy::new(0);
        let mut slab: Slab<()> = Slab::new();
        for exponent in 0..64 {
            hierarchy.move_base(&mut slab, 1 << exponent);
        }
        assert_eq!(hierarchy.heap_bytes(), 0);
        assert_eq!(hierarchy.nearest(), None);
    }

    #[test]
    fn one_slot_opens_and_the_rest_stay() {
        let mut hierarchy = Hierarchy::new(0);
        let mut slab = Slab::new();
        for (seq, deadline) in [0x0105, 0x0205, 0x0206, 0x010000].into_iter().enumerate() {
            let handle = slab.insert(deadline, seq as u64, ()).expect("there is room");
            hierarchy.link(&mut slab, handle.place());
        }
        assert_eq!(hierarchy.occupied, 0b110);
        hierarchy.unlink(&mut slab, 0);
        assert_eq!(hierarchy.nearest(), Some(0x0205));
        hierarchy.move_base(&mut slab, 0x0200);
        assert_eq!(hierarchy.occupied, 0b101, "slot 2 of level 1 went down to level 0");
        assert_eq!(hierarchy.nearest(), Some(0x0205));
    }
}
