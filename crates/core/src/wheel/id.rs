//! Ids: the numbers by which the parts of a wheel name one another.
//!
//! All of them are `u32`, so that a reference is 4 bytes and the borrow checker sees no pointers.
//! `NIL` is beyond the end of every vector, so a look-up by it finds nothing.

/// Where an entry is: the number of its chunk, then 6 bits of place within the chunk.
pub(super) type Place = u32;
/// A chunk of [`Chunks`](super::chunk::Chunks).
pub(super) type ChunkId = u32;
/// A slot of [`Tree`](super::tree::Tree).
pub(super) type SlotId = u32;
/// A fan of [`Tree`](super::tree::Tree).
pub(super) type FanId = u32;
/// Where a record is: the number of its block, then 4 bits of position within the block.
pub(super) type Seat = u32;

/// Stands for "none".
pub(super) const NIL: u32 = u32::MAX;

/// An id as an index.
#[inline]
pub(super) const fn at(id: u32) -> usize {
    id as usize
}
