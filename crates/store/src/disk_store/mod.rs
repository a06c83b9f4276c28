//! The store on a disk.

mod checkpointing;
mod count;
mod look;
mod merge;
mod moving;
mod opening;
mod output;
mod pin;
mod reading;
mod scan;
mod store;
mod unsynced;
mod upkeep;
mod writes;

pub use pin::{PinnedFile, PinnedFiles};
pub use store::DiskStore;
