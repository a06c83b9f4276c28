//! The wheel to use, and its parts.
//!
//! - `queue`: [`Wheel`], the public face.
//! - `hierarchy`: which level and slot an entry belongs to, and what moves when time does.
//! - `level`: one ring of 256 slots with its bitmaps.
//! - `bits`: a set of slot indexes.
//! - `slab`: the home of the entries, with generations.

mod bits;
mod hierarchy;
mod level;
mod queue;
mod slab;

pub use queue::Wheel;
