//! Timestamped operations, played on a virtual clock through the real queue.
//!
//! [`lines`] reads and checks operations. [`player`] sends them to the queue and writes deliveries.

mod lines;
mod player;
mod summary;

pub(crate) use player::play;
