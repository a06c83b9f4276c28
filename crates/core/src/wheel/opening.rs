//! Opening slots: their entries are filed in finer ones.

use super::Wheel;
use super::card::Highs;
use super::chunk::CHUNK_PLACES;
use super::filing::weight;
use super::id::{ChunkId, NIL, SlotId};
use super::tree::{FAN_SLOTS, FEW, FEW_SLOT, TOP_LEVEL};

impl<T> Wheel<T> {
    /// Moves the base, and moves the entries of the slots that it comes to into finer rings.
    pub(super) fn move_base(&mut self, base: u64) {
        let changed = self.tree.move_base(base);
        if changed > 0 {
            self.enter(changed);
        }
        self.sort_out_few();
    }

    /// On the levels 1 to `changed`, the base has come to another slot. Moves the entries of these slots into finer slots.
    #[inline(never)]
    fn enter(&mut self, changed: u8) {
        // First all existing rings take their new places; then the entries for them follow.
        let mut entered = [NIL; TOP_LEVEL as usize];
        for level in (1..=changed).rev() {
            entered[usize::from(level) - 1] = self.tree.enter(level).unwrap_or(NIL);
        }
        for id in entered {
            if id != NIL {
                self.move_down(id, usize::MAX);
            }
        }
    }

    /// If a ring was made, moves those of the few that belong to a ring into it.
    #[inline]
    pub(super) fn sort_out_few(&mut self) {
        if self.tree.made_ring() {
            self.file_few_anew();
        }
    }

    #[inline(never)]
    fn file_few_anew(&mut self) {
        let mut places = [NIL; FEW];
        let mut count = 0;
        if let Some(few) = self.tree.few_mut() {
            few.min_low = u32::MAX;
            self.blocks.drain(&mut few.list, |index, place| {
                places[index] = place;
                count += 1;
            });
        }
        for &place in &places[..count] {
            let deadline = self.deadline_at(place);
            let id = self.tree.slot_of(deadline);
            self.file(id, place, deadline as u32);
        }
        self.tree.prune(FEW_SLOT);
    }

    /// On each level, opens a part of the next slot, in proportion to `ticks`. There are 256 equal
    /// parts, and one is opened whenever the base has come to another slot of the finer level, so
    /// that the slot is open when its time comes.
    pub(super) fn open_ahead(&mut self, ticks: u64) {
        let base = self.tree.base();
        for level in (1..=TOP_LEVEL).rev() {
            let unit = 8 * (level - 1);
            let passed = (base >> unit) - ((base - ticks) >> unit);
            if passed == 0 {
                continue;
            }
            let Some((id, begin)) = self.tree.following(level) else {
                continue;
            };
            let slot = self.tree.slot(id);
            let remaining = weight(slot);
            if remaining <= FEW && !slot.is_open() {
                continue;
            }
            let ahead = (begin >> unit) - (base >> unit);
            // Only what has passed since the slot became the next one counts.
            let passed = passed.min(FAN_SLOTS as u64 - ahead);
            let part = remaining as u64 * passed / (passed + ahead);
            let least = if slot.list.len() > 0 { 1 } else { CHUNK_PLACES };
            if part >= least as u64 {
                self.tree.open(id);
                self.move_down(id, part as usize);
            }
        }
    }

    /// Moves `count` entries from a slot to finer ones. A chunk moves as a whole and counts as if
    /// it were full.
    pub(super) fn move_down(&mut self, id: SlotId, count: usize) {
        let outlet = self.tree.outlet(id);
        let mut left = count;
        while left > 0 {
            let slot = self.tree.slot_mut(id);
            if let Some(place) = self.blocks.pop(&mut slot.list) {
                let mut low = self.chunks.deadline_low(place);
                if crate::planted::is("early-one-tick-at-cascade") && low > self.tree.base() as u32 {
                    low -= 1;
                }
                let finer = self.tree.finer(&outlet, self.tree.deadline(id, low));
                self.file(finer, place, low);
                left -= 1;
            } else if let Some(chunk) = slot.home.first()
                && left >= CHUNK_PLACES
            {
                self.evict(chunk);
                left -= CHUNK_PLACES;
            } else {
                break;
            }
        }
        self.tree.prune(id);
    }

    /// Moves a chunk from its slot to the drain and files its entries.
    pub(super) fn evict(&mut self, chunk: ChunkId) {
        let id = self.chunks.owner(chunk);
        let high = self.tree.high(id);
        let slot = self.tree.slot_mut(id);
        let shared = Highs { deadline: high, number: slot.era };
        self.chunks.drain(chunk, &mut slot.home, shared);
        let Self { chunks, tree, blocks, .. } = self;
        let outlet = tree.outlet(id);
        chunks.file_drained(chunk, |place, low| {
            let finer = tree.finer(&outlet, u64::from(high) << 32 | u64::from(low));
            tree.file(blocks, finer, place, low)
        });
    }
}
