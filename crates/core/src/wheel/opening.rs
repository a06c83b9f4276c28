//! Opening slots: their entries are filed in finer ones.

use super::Wheel;
use super::chunk::CHUNK_PLACES;
use super::filing::weight;
use super::id::{ChunkId, SlotId};
use super::tree::{FEW, TOP_LEVEL};

impl<T> Wheel<T> {
    /// Moves the base, and moves the entries of the slots that it comes to into finer rings.
    pub(super) fn move_base(&mut self, base: u64) {
        let changed = self.tree.move_base(base);
        for level in (1..=changed).rev() {
            if let Some(id) = self.tree.enter(level) {
                self.move_down(id, usize::MAX);
            }
        }
    }

    /// On each level, opens the slot that comes next by as much as is due after so many ticks: in
    /// equal parts, so that it is open when its time comes.
    pub(super) fn open_ahead(&mut self, ticks: u64) {
        for level in (1..=TOP_LEVEL).rev() {
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
        let mut left = count;
        while left > 0 {
            let slot = self.tree.slot_mut(id);
            if let Some(place) = self.blocks.pop(&mut slot.list) {
                let deadline = self.tree.deadline(id, self.chunks.entry(place).deadline_low);
                let era = self.chunks.card(place).era;
                let finer = self.tree.finer_of(id, deadline);
                self.file(finer, place, deadline, era);
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
        let high = u64::from(self.tree.high(id)) << 32;
        let slot = self.tree.slot_mut(id);
        let era = slot.era;
        self.chunks.drain(chunk, &mut slot.home);
        let mut count = 0;
        for index in 0..CHUNK_PLACES {
            if let Some((place, low)) = self.chunks.deadline_low(chunk, index) {
                let deadline = high | u64::from(low);
                let finer = self.tree.finer_of(id, deadline);
                self.file(finer, place, deadline, era);
                count += 1;
            }
        }
        count
    }
}
