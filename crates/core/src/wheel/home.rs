//! [`Home`]: the chunks of one owner.

use super::id::{ChunkId, NIL, Place, SlotId, at};

/// The owner of chunks that hold entries of several slots. Not the id of a slot.
pub(super) const COMMONS: SlotId = NIL;
/// The owner of the chunks of slots that were opened. Their entries are in the lists of finer slots. A hole in such a chunk is not filled
/// until the chunk is empty or moves to the commons. Not the id of a slot.
pub(super) const DRAIN: SlotId = NIL - 1;

/// The previous and the next chunk in the same home. In an unused chunk, `next` is the next unused chunk.
#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) next: ChunkId,
    prev: ChunkId,
}

impl Link {
    pub(super) const NONE: Self = Self { next: NIL, prev: NIL };
}

/// The chunks of one owner, in the order in which the owner got them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    /// The hole that was made last. Its memory is probably still in the cache.
    pub(super) hole: Place,
    first: ChunkId,
    last: ChunkId,
    count: u32,
}

impl Home {
    pub(super) const EMPTY: Self = Self { hole: NIL, first: NIL, last: NIL, count: 0 };

    /// The number of chunks.
    pub(super) fn count(&self) -> usize {
        at(self.count)
    }

    /// Whether there is a hole for an entry.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.hole != NIL
    }

    /// The chunk that has been in this home for the longest time.
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
    /// The chunks in their order, the first one first. Panics if the links or the count are wrong.
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
