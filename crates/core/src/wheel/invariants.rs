//! The invariants of the wheel that hold between any two calls.

use super::Wheel;
use super::home::{COMMONS, DRAIN};
use super::id::{CHUNK_PLACES, at};
use super::tree::FEW_SLOT;

impl<T> Wheel<T> {
    /// Panics if an invariant does not hold. O(places).
    pub(super) fn check(&self) {
        assert_eq!(self.tree.base(), self.now.saturating_add(1));
        self.tree.check();
        self.chunks.check(&self.tree.slots);
        self.blocks.check(self.tree.slots.iter().map(|slot| &slot.list));
        let mut len = 0;
        let mut filed = alloc::vec![0; self.tree.slots.len()];
        for id in 0..self.chunks.count() {
            let taken: alloc::vec::Vec<_> =
                (0..CHUNK_PLACES).filter_map(|index| self.chunks.taken_at(id, index)).collect();
            assert_eq!(taken.len(), self.chunks.taken_in(id), "chunk {id} is miscounted");
            len += taken.len();
            for place in taken {
                let deadline = self.deadline_at(place);
                assert!(deadline > self.now, "{deadline} has passed");
                let owner = self.chunks.owner(id);
                let slot = if owner == COMMONS || owner == DRAIN {
                    let seat = self.chunks.seat(place);
                    assert_eq!(self.blocks.at(seat), place, "the record of {place} is not at its seat");
                    let slot = self.blocks.owner(seat);
                    filed[at(slot)] += 1;
                    assert!(self.tree.spans(slot, deadline), "{deadline} is in the list of slot {slot}");
                    let misplaced = slot == FEW_SLOT && self.tree.is_misplaced(deadline);
                    assert!(!misplaced, "{deadline} is with the few, beside its ring");
                    slot
                } else {
                    assert!(
                        self.tree.begins(owner) <= deadline,
                        "slot {owner} would come too late for {deadline}"
                    );
                    owner
                };
                assert!(self.tree.is_reached(slot), "slot {slot} with {deadline} is not occupied");
                let min = self.tree.deadline(slot, self.tree.slot(slot).min_low);
                assert!(min <= deadline, "{min} is the least of slot {slot}, which has {deadline}");
                assert!(self.tree.spans(slot, min), "{min} is not in the span of slot {slot}");
            }
        }
        assert_eq!(len, self.len);
        for (slot, count) in self.tree.slots.iter().zip(filed) {
            assert_eq!(slot.list.len(), count, "a list has records of nothing");
        }
    }
}
