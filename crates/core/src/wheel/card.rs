//! [`Cards`]: additional data of the filed entries, which are the entries of the commons and the drain (see the module `wheel`).

use alloc::vec::Vec;

use super::id::{CHUNK_PLACES, ChunkId, NIL, Seat, at};

/// The high words (the upper 32 bits) of an entry's deadline and of the number of its insertion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Highs {
    pub(super) deadline: u32,
    pub(super) number: u32,
}

/// The cards of the entries of one chunk. The card of a hole has no meaning.
pub(super) struct CardSet {
    /// The seat of the record of each entry.
    pub(super) seats: [Seat; CHUNK_PLACES],
    /// The high words of all entries of the chunk, if they are the same, as in a chunk of the drain.
    shared: Highs,
    /// The index of the array with separate high words for each entry; `NIL` if the high words are shared. In an unused set: the index of
    /// the next unused set.
    highs: u32,
}

/// The cards of all chunks of the commons and the drain.
pub(super) struct Cards {
    sets: Vec<CardSet>,
    highs: Vec<[Highs; CHUNK_PLACES]>,
    /// For each chunk the index of its set of cards, or `NIL`.
    by_chunk: Vec<u32>,
    unused_sets: u32,
    /// The first unused array of high words. Each unused array has the index of the next one in its first `deadline`.
    unused_highs: u32,
}

impl Cards {
    pub(super) const fn new() -> Self {
        Self {
            sets: Vec::new(),
            highs: Vec::new(),
            by_chunk: Vec::new(),
            unused_sets: NIL,
            unused_highs: NIL,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.sets.capacity() * size_of::<CardSet>()
            + self.highs.capacity() * size_of::<[Highs; CHUNK_PLACES]>()
            + self.by_chunk.capacity() * size_of::<u32>()
    }

    pub(super) fn reserve(&mut self, chunks: usize) {
        self.by_chunk.reserve_exact(chunks);
    }

    /// Adds the next chunk, without cards.
    pub(super) fn add_chunk(&mut self) {
        self.by_chunk.push(NIL);
    }

    /// Gives cards to a chunk. With `shared`, all its entries have these high words; without, each entry has its own.
    pub(super) fn add(&mut self, chunk: ChunkId, shared: Option<Highs>) {
        let mut id = self.unused_sets;
        match self.sets.get(at(id)) {
            Some(set) => self.unused_sets = set.highs,
            None => {
                id = self.sets.len() as u32;
                self.sets.push(CardSet { seats: [0; CHUNK_PLACES], shared: Highs::default(), highs: NIL });
            }
        }
        self.by_chunk[at(chunk)] = id;
        self.sets[at(id)].shared = shared.unwrap_or_default();
        self.sets[at(id)].highs = match shared {
            Some(_) => NIL,
            None => self.add_highs(),
        };
    }

    fn add_highs(&mut self) -> u32 {
        let id = self.unused_highs;
        match self.highs.get(at(id)) {
            Some(highs) => {
                self.unused_highs = highs[0].deadline;
                id
            }
            None => {
                self.highs.push([Highs::default(); CHUNK_PLACES]);
                (self.highs.len() - 1) as u32
            }
        }
    }

    /// Gives each entry of a chunk its own high words, with the values that were shared.
    pub(super) fn separate(&mut self, chunk: ChunkId) {
        let shared = self.set(chunk).shared;
        let highs = self.add_highs();
        self.highs[at(highs)] = [shared; CHUNK_PLACES];
        self.set_mut(chunk).highs = highs;
    }

    /// Removes the cards of a chunk.
    pub(super) fn remove(&mut self, chunk: ChunkId) {
        let id = self.by_chunk[at(chunk)];
        let set = &mut self.sets[at(id)];
        if let Some(highs) = self.highs.get_mut(at(set.highs)) {
            highs[0].deadline = self.unused_highs;
            self.unused_highs = set.highs;
        }
        set.highs = self.unused_sets;
        self.unused_sets = id;
    }

    fn set(&self, chunk: ChunkId) -> &CardSet {
        &self.sets[at(self.by_chunk[at(chunk)])]
    }

    #[inline]
    pub(super) fn set_mut(&mut self, chunk: ChunkId) -> &mut CardSet {
        &mut self.sets[at(self.by_chunk[at(chunk)])]
    }

    #[inline]
    pub(super) fn seat(&self, chunk: ChunkId, index: usize) -> Seat {
        self.set(chunk).seats[index]
    }

    #[inline]
    pub(super) fn set_seat(&mut self, chunk: ChunkId, index: usize, seat: Seat) {
        self.set_mut(chunk).seats[index] = seat;
    }

    pub(super) fn highs(&self, chunk: ChunkId, index: usize) -> Highs {
        let set = self.set(chunk);
        self.highs.get(at(set.highs)).map_or(set.shared, |highs| highs[index])
    }

    /// Stores the high words of an entry whose chunk has high words for each entry.
    pub(super) fn set_highs(&mut self, chunk: ChunkId, index: usize, highs: Highs) {
        let id = self.set(chunk).highs;
        self.highs[at(id)][index] = highs;
    }
}

/// For tests only.
#[cfg(test)]
impl Cards {
    /// Panics if a set of cards is used by two of these chunks, or if it is neither used by one of them nor unused. For each chunk,
    /// `chunks` says whether its entries have separate high words.
    pub(super) fn check(&self, chunks: impl Iterator<Item = (ChunkId, bool)>) {
        let mut used_sets = alloc::vec![false; self.sets.len()];
        let mut used_highs = alloc::vec![false; self.highs.len()];
        let mut use_set = |id| assert!(!core::mem::replace(&mut used_sets[at(id)], true), "cards {id} twice");
        let mut use_highs =
            |id| assert!(!core::mem::replace(&mut used_highs[at(id)], true), "highs {id} twice");
        for (chunk, own) in chunks {
            use_set(self.by_chunk[at(chunk)]);
            let highs = self.set(chunk).highs;
            assert_eq!(highs != NIL, own, "chunk {chunk} has high words of its own");
            if own {
                use_highs(highs);
            }
        }
        let mut unused = self.unused_sets;
        while unused != NIL {
            use_set(unused);
            unused = self.sets[at(unused)].highs;
        }
        let mut unused = self.unused_highs;
        while unused != NIL {
            use_highs(unused);
            unused = self.highs[at(unused)][0].deadline;
        }
        assert!(used_sets.into_iter().chain(used_highs).all(|used| used), "cards without an owner");
    }
}
