//! Timestamped operations, played on a virtual clock through the real queue.
//!
//! [`lines`] reads and checks, [`dues`] knows where nothing can be due, [`player`] carries operations in and deliveries out.

mod dues;
mod lines;
mod player;
mod summary;

pub(crate) use player::play;
