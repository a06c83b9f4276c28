//! Copies of a data directory: of one that is in use, of one that is not, and back.

mod copy;
mod report;
mod running;
mod stopped;

pub use report::{BackupError, BackupReport};
pub use running::Holds;
pub(crate) use running::{Hold, Source};
pub use stopped::{backup, restore};
