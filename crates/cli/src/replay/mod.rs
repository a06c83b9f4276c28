//! Timestamped operations, played on a virtual clock through the real queue.
//!
//! [`lines`] reads and checks, [`player`] carries operations in and deliveries out.

mod lines;
mod player;
mod summary;

pub(crate) use player::play;
