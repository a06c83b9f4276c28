//! The store on a disk. The log writer, the reader and the maintenance share one catalog.

mod closing;
#[cfg(test)]
mod fixtures;
mod jobs;
mod log_writer;
mod maintenance;
mod merge;
mod opening;
mod pin;
mod reader;
mod setup;
mod store;

pub use pin::{PinnedFile, PinnedFiles, stamps_of_copy};
pub use store::DiskStore;
