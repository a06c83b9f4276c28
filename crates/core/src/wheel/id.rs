//! Ids: numbers for the parts of a wheel.
//!
//! All ids are `u32`, so a reference takes 4 bytes and no pointer is needed. `NIL` is beyond the end of every vector, so a look-up of
//! `NIL` finds nothing.

/// The place of an entry: the number of its chunk, then 6 bits for the index in the chunk.
pub(super) type Place = u32;
/// A chunk of [`Chunks`](super::chunk::Chunks).
pub(super) type ChunkId = u32;
/// A slot of [`Tree`](super::tree::Tree).
pub(super) type SlotId = u32;
/// A fan of [`Tree`](super::tree::Tree).
pub(super) type FanId = u32;
/// The position of a record: the number of its block, then 4 bits for the index in the block.
pub(super) type Seat = u32;

/// The number of places in a chunk. A chunk of `u64` values is 1 KB.
pub(super) const CHUNK_PLACES: usize = 64;

/// Stands for "none".
pub(super) const NIL: u32 = u32::MAX;

/// An id as an index.
#[inline]
pub(super) const fn at(id: u32) -> usize {
    id as usize
}

/// An entry that is due.
#[derive(Clone, Copy)]
pub(super) struct Due {
    /// The number of the insertion, as one word.
    pub(super) key: u64,
    pub(super) place: Place,
}
