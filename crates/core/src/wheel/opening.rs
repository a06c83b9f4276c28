//! Opening slots: the entries of a slot are filed in finer slots.

use super::Wheel;
use super::card::Highs;
use super::filing::weight;
use super::id::{CHUNK_PLACES, ChunkId, NIL, SlotId};
use super::tree::{FAN_SLOTS, FEW, FEW_SLOT, TOP_LEVEL};

impl<T> Wheel<T> {
    /// Moves the base. The base may enter other slots; the entries of these slots are moved into finer rings.
    pub(super) fn move_base(&mut self, base: u64) {
        let changed = self.tree.move_base(base);
        if changed > 0 {
            self.enter(changed);
        }
        self.sort_out_few();
    }

    /// On the levels 1 to `changed`, the base has entered another slot. Moves the entries of these slots into finer slots.
    #[inline(never)]
    fn enter(&mut self, changed: u8) {
        // First the fans of all entered slots become rings; then the entries are moved into them.
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

    /// If a ring was made, moves the entries of the slot of the few that belong to a ring into it.
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

    /// On each level, opens a part of the slot that the base reaches next. The part is in proportion to `ticks`, the number of ticks that
    /// have passed. A slot is opened in 256 equal parts, one each time the base enters another slot of the finer level. So the slot is
    /// completely open when the base reaches it.
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
            // Only the time since the slot became the next one counts.
            let passed = passed.min(FAN_SLOTS as u64 - ahead);
            let part = remaining as u64 * passed / (passed + ahead);
            let least = if slot.list.len() > 0 { 1 } else { CHUNK_PLACES };
            if part >= least as u64 {
                self.tree.open(id);
                self.move_down(id, part as usize);
            }
        }
    }

    /// Moves at most `count` entries from a slot to finer slots. A chunk is moved only as a whole, and counts as 64 entries.
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

    /// Moves a chunk from its slot to the drain and files the entries of the chunk.
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
