//! Opening slots: their entries are filed in finer ones.

use super::Wheel;
use super::card::Highs;
use super::filing::weight;
use super::id::{ChunkId, NIL, SlotId};
use super::tree::{FEW, FEW_SLOT, TOP_LEVEL};

impl<T> Wheel<T> {
    /// Moves the base, and moves the entries of the slots that it comes to into finer rings.
    pub(super) fn move_base(&mut self, base: u64) {
        let changed = self.tree.move_base(base);
        if changed > 0 {
            self.enter(changed);
        }
        self.sort_out_few();
    }

    /// The base has come to other slots, up to this level.
    #[inline(never)]
    fn enter(&mut self, changed: u8) {
        // First all rings that are there already take their places, then come the entries for them.
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

    /// On each level, opens the slot that comes next by as much as is due after so many ticks: in
    /// equal parts, so that it is open when its time comes.
    ///
    /// The coarser levels have their turn only when the base has come to another slot of level 1.
    pub(super) fn open_ahead(&mut self, ticks: u64) {
        let base = self.tree.base();
        let coarsest = if (base ^ (base - ticks)) >> 8 == 0 { 1 } else { TOP_LEVEL };
        for level in (1..=coarsest).rev() {
            let Some((id, ahead)) = self.tree.following(level) else {
                continue;
            };
            let slot = self.tree.slot(id);
            let remaining = weight(slot);
            if remaining == 0 || remaining <= FEW && !slot.is_open() {
                continue;
            }
            self.tree.open(id);
            // Ticks since the slot became the next.
            let span = 1_u128 << (8 * level);
            let passed = u128::from(ticks).min(span - u128::from(ahead));
            let part = (remaining as u128 * passed).div_ceil(passed + u128::from(ahead));
            self.move_down(id, part as usize);
        }
    }

    /// Moves so many entries, or the rest of a chunk more, from a slot to finer ones.
    pub(super) fn move_down(&mut self, id: SlotId, count: usize) {
        let outlet = self.tree.outlet(id);
        let mut left = count;
        while left > 0 {
            let slot = self.tree.slot_mut(id);
            if let Some(place) = self.blocks.pop(&mut slot.list) {
                let low = self.chunks.deadline_low(place);
                let finer = self.tree.finer(&outlet, self.tree.deadline(id, low));
                self.file(finer, place, low);
                left -= 1;
            } else if let Some(chunk) = slot.home.first() {
                left = left.saturating_sub(self.evict(chunk));
            } else {
                break;
            }
        }
        self.tree.prune(id);
    }

    /// Moves a chunk from its slot to the drain and files its entries. Returns how many there
    /// were.
    pub(super) fn evict(&mut self, chunk: ChunkId) -> usize {
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
        })
    }
}
