//! [`Card`]: what has to be known of an entry that does not live in a chunk of its own slot.

use alloc::vec::Vec;

use super::chunk::CHUNK_PLACES;
use super::id::{ChunkId, NIL, Seat, at};

/// The card of an entry in the commons or the drain.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Card {
    /// Where its record is.
    pub(super) seat: Seat,
    /// The high word of its deadline.
    pub(super) high: u32,
    /// The high word of the number of its insertion.
    pub(super) era: u32,
}

/// The cards of the chunks of the commons and the drain, 64 to a chunk. The card of a place that is not taken
/// means nothing.
pub(super) struct Cards {
    sets: Vec<[Card; CHUNK_PLACES]>,
    /// The set of each chunk that has one.
    by_chunk: Vec<u32>,
    /// Sets that no chunk has, linked by the seat of their first card.
    unused: u32,
}

impl Cards {
    pub(super) const fn new() -> Self {
        Self { sets: Vec::new(), by_chunk: Vec::new(), unused: NIL }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.sets.capacity() * size_of::<[Card; CHUNK_PLACES]>() + self.by_chunk.capacity() * size_of::<u32>()
    }

    /// Makes room for one more chunk, which has no cards.
    pub(super) fn add_chunk(&mut self) {
        self.by_chunk.push(NIL);
    }

    /// Gives a chunk a set of cards.
    pub(super) fn add(&mut self, chunk: ChunkId) {
        let mut set = self.unused;
        match self.sets.get(at(set)) {
            Some(cards) => self.unused = cards[0].seat,
            None => {
                set = self.sets.len() as u32;
                self.sets.push([Card::default(); CHUNK_PLACES]);
            }
        }
        self.by_chunk[at(chunk)] = set;
    }

    /// Takes it away again.
    pub(super) fn remove(&mut self, chunk: ChunkId) {
        let set = self.by_chunk[at(chunk)];
        self.sets[at(set)][0].seat = self.unused;
        self.unused = set;
    }

    #[inline]
    pub(super) fn card(&self, chunk: ChunkId, index: usize) -> &Card {
        &self.sets[at(self.by_chunk[at(chunk)])][index]
    }

    #[inline]
    pub(super) fn card_mut(&mut self, chunk: ChunkId, index: usize) -> &mut Card {
        &mut self.sets[at(self.by_chunk[at(chunk)])][index]
    }
}
