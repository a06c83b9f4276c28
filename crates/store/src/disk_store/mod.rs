//! The store on a disk.

mod checkpointing;
mod look;
mod opening;
mod reading;
mod scan;
mod store;
mod upkeep;
mod writes;

pub use store::DiskStore;
