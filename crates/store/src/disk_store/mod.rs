//! The store on a disk.

mod opening;
mod store;
mod upkeep;
mod writes;

pub use store::DiskStore;
