//! The invariants of the slots that hold between any two calls.

use alloc::vec;

use super::super::filing::weight;
use super::super::id::{CHUNK_PLACES, FanId, NIL, SlotId, at};
use super::{
    FAN_SLOTS, FEW, FEW_FAN, FEW_SLOT, Fan, NO_FAN, Slot, TOP_LEVEL, Tree, digit, high, level_of_difference,
};

impl Tree {
    /// Panics in three cases: a fan is not reached in exactly one way; a slot is marked as occupied but empty, or the reverse; a slot of a
    /// ring has entries although its time has passed.
    pub(in super::super) fn check(&self) {
        let mut seen = vec![false; self.fans.len()];
        let mut see = |id: FanId| {
            assert!(!core::mem::replace(&mut seen[at(id)], true), "fan {id} is there twice");
            &self.fans[at(id)]
        };
        if !self.fans.is_empty() {
            self.check_few(see(FEW_FAN));
        }
        for (level, &first) in (0..).zip(&self.rings) {
            if first != NO_FAN {
                let fan = see(self.slot(first).within);
                assert_eq!((fan.first, fan.level, fan.of), (first, level, NIL), "the ring of level {level}");
                assert_eq!(fan.high, high(self.base), "the high word of the ring of level {level}");
                let first = fan.occupied.first().expect("no ring is empty");
                let nearest = digit(self.base, level).checked_add(u8::from(level > 0));
                assert!(
                    nearest.is_some_and(|nearest| first >= nearest),
                    "{first} has passed in ring {level}"
                );
            }
        }
        for (&high, &id) in &self.tops {
            let fan = see(id);
            assert_eq!((fan.high, fan.level, fan.of), (high, TOP_LEVEL, NIL), "the top of {high}");
            assert!(high > self::high(self.base), "{high} has passed in the tops");
            assert!(!fan.occupied.is_empty(), "the top of {high} is empty");
        }
        for (id, slot) in (0..).zip(&self.slots) {
            self.check_slot(id, slot);
            if slot.is_open() {
                let (fan, level) = (see(slot.fan), self.level(id));
                assert_eq!((fan.of, fan.high), (id, self.high(id)), "the fan of slot {id}");
                assert_eq!(fan.level + 1, level, "the level of the fan of slot {id}");
                assert!(slot.has_entries() || !fan.occupied.is_empty(), "slot {id} is open and empty");
            }
        }
        for (unused, slots) in [(self.unused_fans, FAN_SLOTS), (self.unused_tops, 1)] {
            let mut id = unused;
            while id != NIL {
                let fan = see(id);
                assert!(fan.occupied.is_empty(), "fan {id} is not in use");
                let next = fan.first + slots as u32;
                assert!(self.slots.get(at(next)).is_none_or(|slot| slot.within != id), "slots of fan {id}");
                id = fan.of;
            }
        }
        assert!(seen.into_iter().all(|seen| seen), "fans without an owner");
    }

    /// Whether a deadline in the slot of the few belongs to an existing ring that was not just made.
    pub(in super::super) fn is_misplaced(&self, deadline: u64) -> bool {
        let level = level_of_difference(deadline, self.base);
        !self.made_ring && self.rings[usize::from(level)] != NO_FAN
    }

    fn check_few(&self, fan: &Fan) {
        let few = self.slot(FEW_SLOT);
        assert_eq!((fan.level, fan.of), (0, NIL), "the fan of the few");
        assert!(few.list.len() <= FEW && few.home.count() == 0, "{} are few", weight(few));
        assert!(!few.has_entries() || fan.high == high(self.base), "the few are of {}", fan.high);
    }

    fn check_slot(&self, id: SlotId, slot: &Slot) {
        let fan = self.within(id);
        let occupied = fan.occupied.contains((id - fan.first) as u8);
        let expected = slot.has_entries() || slot.is_open();
        // The mark of the slot of the few need not be exact.
        assert!(occupied == expected || id == FEW_SLOT, "slot {id} is occupied: {occupied}");
        assert!(occupied || slot.min_low == u32::MAX, "the least of slot {id}, which is empty");
        assert!(slot.home.count() == 0 || fan.level > 0, "chunks in slot {id}, of one tick");
        assert!(weight(slot) <= self.many + 2 * CHUNK_PLACES, "slot {id} has too many");
    }
}
