//! [`Pins`]: a read under way may return an older record of a task than memory knows. So the task stays in memory until the read is over.

use std::collections::{BTreeSet, VecDeque};

use super::Residence;
use crate::seam::RequestId;
use crate::slot::Slot;

/// The reads under way, and the entries that nothing else needs.
#[derive(Debug, Default)]
pub(super) struct Pins {
    under_way: BTreeSet<RequestId>,
    /// Durable entries, with the last read that was under way when they were pinned.
    pinned: VecDeque<(RequestId, Slot)>,
}

impl Residence {
    /// A read begins. Its records may be older than what memory knows.
    pub(crate) fn begin_read(&mut self, request: RequestId) {
        self.pins.under_way.insert(request);
    }

    /// The store has answered, and everything in its answer is dealt out.
    pub(crate) fn end_read(&mut self, request: RequestId) {
        self.pins.under_way.remove(&request);
    }

    /// Whether a read is still under way.
    pub(crate) fn has_reads(&self) -> bool {
        !self.pins.under_way.is_empty()
    }

    /// Keeps a durable entry until every read under way is answered.
    pub(crate) fn pin(&mut self, slot: Slot) {
        let last = *self.pins.under_way.last().expect("an entry is pinned for a read under way");
        self.get_mut(slot).pinned = Some(last);
        self.pins.pinned.push_back((last, slot));
    }

    /// Takes the next pinned entry that no read under way can contradict any more.
    pub(crate) fn pop_unpinned(&mut self) -> Option<Slot> {
        loop {
            let oldest = self.pins.under_way.first().copied();
            let is_over = |(last, _): &mut (RequestId, Slot)| oldest.is_none_or(|oldest| *last < oldest);
            let (last, slot) = self.pins.pinned.pop_front_if(is_over)?;
            // The slot may have another entry by now, or this entry may be pinned for a later read.
            let its_turn = self.has(slot) && self.get(slot).pinned == Some(last);
            if its_turn && self.get(slot).dirty.is_none() {
                self.get_mut(slot).pinned = None;
                return Some(slot);
            }
        }
    }
}
