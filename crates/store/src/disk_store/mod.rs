//! The store on a disk.

mod checkpointing;
mod count;
mod hold;
mod look;
mod merge;
mod moving;
mod opening;
mod output;
mod reading;
mod scan;
mod store;
mod unsynced;
mod upkeep;
mod writes;

pub use hold::{Held, HeldFile};
pub use store::DiskStore;
