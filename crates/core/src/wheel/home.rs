//! [`Home`]: the chunks of one owner.

use super::id::{ChunkId, NIL, Place, SlotId, at};

/// Owner of the chunks that hold entries of any slots. Not the id of a slot.
pub(super) const COMMONS: SlotId = NIL;
/// Owner of the chunks of slots that were opened: their entries are in the lists of finer slots,
/// and no place is filled again before all are free. Not the id of a slot.
pub(super) const DRAIN: SlotId = NIL - 1;

/// The neighbours of a chunk in its home; or the next one of the unused chunks.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) next: ChunkId,
    prev: ChunkId,
}

impl Link {
    pub(super) const NONE: Self = Self { next: NIL, prev: NIL };
}

/// The chunks of one owner, in the order in which they came to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    /// The hole that was made last: its cache line is probably still in the cache.
    pub(super) hole: Place,
    first: ChunkId,
    last: ChunkId,
    count: u32,
}

impl Home {
    pub(super) const EMPTY: Self = Self { hole: NIL, first: NIL, last: NIL, count: 0 };

    /// How many chunks.
    pub(super) fn count(&self) -> usize {
        at(self.count)
    }

    /// Whether there is a hole to put an entry into.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.hole != NIL
    }

    /// The chunk that came first.
    pub(super) fn first(&self) -> Option<ChunkId> {
        (self.first != NIL).then_some(self.first)
    }

    pub(super) fn link(&mut self, links: &mut [Link], id: ChunkId) {
        let last = self.last;
        links[at(id)] = Link { next: NIL, prev: last };
        match last {
            NIL => self.first = id,
            _ => links[at(last)].next = id,
        }
        self.last = id;
        self.count += 1;
    }

    pub(super) fn unlink(&mut self, links: &mut [Link], id: ChunkId) {
        let Link { next, prev } = links[at(id)];
        match prev {
            NIL => self.first = next,
            _ => links[at(prev)].next = next,
        }
        match next {
            NIL => self.last = prev,
            _ => links[at(next)].prev = prev,
        }
        self.count -= 1;
    }
}

/// For tests only.
#[cfg(test)]
impl Home {
    /// The chunks, the first first. Panics if they are not linked both ways, or miscounted.
    pub(super) fn chunks(&self, links: &[Link]) -> alloc::vec::Vec<ChunkId> {
        let mut chunks = alloc::vec![];
        let (mut prev, mut id) = (NIL, self.first);
        while id != NIL {
            assert_eq!(links[at(id)].prev, prev, "the link back from chunk {id}");
            assert!(chunks.len() < self.count(), "more chunks than {}", self.count);
            chunks.push(id);
            (prev, id) = (id, links[at(id)].next);
        }
        assert_eq!((self.last, at(self.count)), (prev, chunks.len()), "the last chunk, and how many");
        chunks
    }
}
