//! [`Pins`]: a read under way may return an older record of a task than the record in memory. So the task stays in memory until the read is
//! over.

use std::collections::{BTreeSet, VecDeque};

use super::Residence;
use crate::residence::Slot;
use crate::seam::RequestId;

/// The reads under way, and the entries that stay in memory only because of these reads.
#[derive(Debug, Default)]
pub(super) struct Pins {
    under_way: BTreeSet<RequestId>,
    /// The pinned entries, each with the last read that was under way when the entry was pinned.
    pinned: VecDeque<(RequestId, Slot)>,
}

impl Residence {
    /// Notes that a read begins. The records that it returns may be older than the records in memory.
    pub(crate) fn begin_read(&mut self, request: RequestId) {
        self.pins.under_way.insert(request);
    }

    /// Notes that a read is over: the store has answered and all results are used, or the store has failed to answer.
    pub(crate) fn end_read(&mut self, request: RequestId) {
        self.pins.under_way.remove(&request);
    }

    /// Whether a read is still under way.
    pub(crate) fn has_reads(&self) -> bool {
        !self.pins.under_way.is_empty()
    }

    /// Keeps a durable entry in memory until every read that is under way now is over.
    pub(crate) fn pin(&mut self, slot: Slot) {
        let last = *self.pins.under_way.last().expect("an entry is pinned for a read under way");
        self.get_mut(slot).pinned = Some(last);
        self.pins.pinned.push_back((last, slot));
    }

    /// Unpins the next entry whose reads are all over, and returns its slot. Entries that have left memory, were pinned again or have
    /// changed are passed over.
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
