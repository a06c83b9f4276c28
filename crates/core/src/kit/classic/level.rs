//! [`Level`]: one ring of a [`HierarchicalWheel`](super::HierarchicalWheel), and its arithmetic.

use alloc::vec;
use alloc::vec::Vec;

use super::list::List;

/// One ring of slots, of one tick each.
pub(super) struct Level {
    pub(super) tick: u64,
    /// Tick times number of slots, or `u64::MAX` if the product does not fit; in that case the level covers all of time.
    pub(super) turn: u64,
    /// The number of the level's tick in which the wheel started. Slot 0 is the slot of this tick.
    first: u64,
    slots: Vec<List>,
}

impl Level {
    pub(super) fn new(start: u64, tick: u64, size: usize) -> Self {
        let turn = tick.saturating_mul(size as u64);
        Self { tick, turn, first: start / tick, slots: vec![List::EMPTY; size] }
    }

    /// The clock of this level: now, rounded down to the level's tick.
    pub(super) fn clock(&self, now: u64) -> u64 {
        now - now % self.tick
    }

    /// Whether a deadline is less than a turn after the level's clock.
    pub(super) fn covers(&self, now: u64, deadline: u64) -> bool {
        deadline < self.clock(now).saturating_add(self.turn)
    }

    /// The time at which the bucket of a deadline is taken out: the deadline, rounded down to the tick.
    pub(super) fn expiry(&self, deadline: u64) -> u64 {
        deadline - deadline % self.tick
    }

    /// The slot of a deadline that the level covers. Its bucket's expiry has the same slot.
    pub(super) fn slot(&self, deadline: u64) -> usize {
        ((deadline / self.tick - self.first) % self.slots.len() as u64) as usize
    }

    /// The bucket of a deadline that the level covers.
    pub(super) fn bucket(&self, deadline: u64) -> List {
        self.slots[self.slot(deadline)]
    }

    /// The bucket of a deadline that the level covers.
    pub(super) fn bucket_mut(&mut self, deadline: u64) -> &mut List {
        let slot = self.slot(deadline);
        &mut self.slots[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C14: a level whose turn does not fit into 64 bits covers all later deadlines.
    #[test]
    fn c14_a_turn_saturates_and_never_wraps() {
        let level = Level::new(0, 1 << 63, 2);
        assert_eq!(level.turn, u64::MAX);
        assert!(level.covers(0, u64::MAX - 1));
        assert!(level.covers(u64::MAX - 2, u64::MAX - 1));
        assert_eq!(level.slot(u64::MAX - 1), 1);

        // The length of the turn fits into 64 bits, but the time of its end does not.
        let level = Level::new(u64::MAX - 10, 1, 100);
        assert_eq!(level.turn, 100);
        assert!(level.covers(u64::MAX - 10, u64::MAX - 1));
        assert_eq!(level.slot(u64::MAX - 1), 9);
    }

    #[test]
    fn c10_a_clock_is_a_multiple_of_the_tick() {
        for (start, clock) in [(0, 0), (8, 0), (9, 9), (10, 9), (17, 9), (18, 18)] {
            assert_eq!(Level::new(start, 9, 3).clock(start), clock);
        }
    }
}
