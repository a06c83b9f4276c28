//! [`Ring`]: the slots of one level that have entries, for a picture of the wheel.

use super::Wheel;
use super::bits::Bits;
use super::tree::TOP_LEVEL;

/// The slots of one level of a [`Wheel`], as [`Wheel::rings`] found them.
///
/// A ring has 256 slots. Slot `i` spans `slot_ticks` ticks; its entries are due when the hand reaches it in this turn of the ring. The
/// slots before the hand have passed and are empty.
///
/// ```
/// use tickwheel_core::{TimerQueue, Wheel};
///
/// let mut wheel = Wheel::new(0);
/// wheel.insert(7, "soon").unwrap();
/// wheel.insert(2 * 256 + 5, "later").unwrap();
/// let [finest, second, ..] = wheel.rings();
/// assert_eq!((finest.slot_ticks, finest.hand), (1, 1));
/// assert!(finest.is_occupied(7) && !finest.is_occupied(5));
/// assert_eq!((second.slot_ticks, second.hand), (256, 0));
/// assert!(second.is_occupied(2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// The number of ticks that one slot spans.
    pub slot_ticks: u64,
    /// The slot in which the first tick is that has not passed.
    pub hand: u8,
    /// A set of slots, 64 in each word. The lowest bit of the first word is slot 0.
    pub occupied: [u64; 4],
}

impl Ring {
    /// The number of slots.
    pub const SLOTS: usize = 256;

    /// Whether a slot has entries. The slot of an entry that was rescheduled to later counts until the hand comes near it.
    #[must_use]
    pub const fn is_occupied(&self, slot: u8) -> bool {
        self.occupied[(slot >> 6) as usize] & 1 << (slot & 63) != 0
    }
}

impl<T> Wheel<T> {
    /// The four rings, the finest first. Entries whose deadlines differ from now in the upper 32 bits are in none of them. O(1): the wheel
    /// keeps the sets of slots anyway, and adds at most 16 entries that have no ring yet.
    #[must_use]
    pub fn rings(&self) -> [Ring; 4] {
        let mut sets = [0, 1, 2, 3].map(|level| self.tree.occupied(level));
        for &place in self.blocks.newest(self.tree.few()) {
            let (level, slot) = self.tree.ring_of(self.deadline_at(place));
            if level < TOP_LEVEL {
                sets[usize::from(level)].set(slot);
            }
        }
        let mut rings = [0, 1, 2, 3].map(|level| {
            let (slot_ticks, hand) = self.tree.hand(level);
            Ring { slot_ticks, hand, occupied: [0; 4] }
        });
        for (ring, set) in rings.iter_mut().zip(sets.map(Bits::words)) {
            ring.occupied = set;
        }
        rings
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::conformance::random::Random;
    use crate::{Handle, TimerQueue};

    /// The rings of these deadlines, by the definition of a ring.
    fn expected(now: u64, deadlines: impl Iterator<Item = u64>) -> [[u64; 4]; 4] {
        let base = now + 1;
        let mut sets = [[0; 4]; 4];
        for deadline in deadlines {
            let level = (0..8).rev().find(|level| (deadline ^ base) >> (8 * level) & 255 != 0).unwrap_or(0);
            if level < 4 {
                let slot = deadline >> (8 * level) & 255;
                sets[level][slot as usize / 64] |= 1 << (slot % 64);
            }
        }
        sets
    }

    #[test]
    fn the_rings_are_those_of_the_deadlines() {
        let mut random = Random::new(7);
        for round in 0..60 {
            let mut wheel = Wheel::new(random.below(1 << (8 + round % 32)));
            let mut live: Vec<(u64, Handle)> = Vec::new();
            for _ in 0..400 {
                match random.below(8) {
                    0..=3 => {
                        let bits = random.below(36);
                        let ahead = 1 + random.below(1 << bits);
                        let many = if random.below(9) == 0 { 40 } else { 1 };
                        for _ in 0..many {
                            let deadline = wheel.now() + ahead + random.below(many);
                            live.push((deadline, wheel.insert(deadline, ()).expect("it is ahead")));
                        }
                    }
                    4..=5 if !live.is_empty() => {
                        let one = random.below(live.len() as u64) as usize;
                        let (_, handle) = live.swap_remove(one);
                        wheel.cancel(handle).expect("it is pending");
                    }
                    _ => {
                        let bits = random.below(30);
                        let now = wheel.now() + random.below(1 << bits);
                        wheel.advance_with(now, |_, ()| ());
                        live.retain(|&(deadline, _)| deadline > now);
                    }
                }
                let rings = wheel.rings();
                let deadlines = live.iter().map(|&(deadline, _)| deadline);
                assert_eq!(rings.map(|ring| ring.occupied), expected(wheel.now(), deadlines));
                let base = wheel.now() + 1;
                for (ring, level) in rings.iter().zip(0..) {
                    assert_eq!(ring.slot_ticks, 1 << (8 * level));
                    assert_eq!(u64::from(ring.hand), base >> (8 * level) & 255);
                }
            }
        }
    }

    #[test]
    fn an_entry_that_was_rescheduled_is_in_its_old_slot_or_in_the_new_one() {
        let mut wheel = Wheel::new(0);
        let handles: Vec<Handle> =
            (0..300).map(|i| wheel.insert(0x0005_0000 + i, ()).expect("it is ahead")).collect();
        for handle in handles {
            wheel.reschedule(handle, 0x0009_0000).expect("it is pending");
        }
        let [_, _, third, _] = wheel.rings();
        let found: Vec<u8> = (0..=255).filter(|&slot| third.is_occupied(slot)).collect();
        assert!(found == [5] || found == [9] || found == [5, 9], "{found:?}");
        wheel.advance_with(0x0008_0000, |_, ()| panic!("none is due"));
        let [_, _, third, _] = wheel.rings();
        assert!(third.is_occupied(9) && !third.is_occupied(5));
    }

    #[test]
    fn a_slot_is_found_in_each_word() {
        let mut wheel = Wheel::new(0);
        for deadline in [63, 64, 200, 255] {
            wheel.insert(deadline, ()).expect("it is ahead");
        }
        let [finest, ..] = wheel.rings();
        let found: Vec<u8> = (0..=255).filter(|&slot| finest.is_occupied(slot)).collect();
        assert_eq!(found, [63, 64, 200, 255]);
    }
}
