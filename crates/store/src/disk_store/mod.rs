//! The store on a disk.

mod checkpointing;
mod look;
mod merge;
mod moving;
mod opening;
mod output;
mod reading;
mod scan;
mod store;
mod upkeep;
mod writes;

pub use store::DiskStore;
