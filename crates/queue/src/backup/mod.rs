//! Copies of a data directory: of one that is in use, of one that is not, and back.

mod copy;
mod report;
mod running;
mod salvage;
mod stopped;

pub use report::{BackupError, BackupReport};
pub use running::Holds;
pub(crate) use running::{Hold, Source};
pub use salvage::{SalvageError, salvage};
pub use stopped::{backup, restore};
pub use tickwheel_store::salvage::{
    Fate, Loss, LostTask, MayHoldEnded, Progress, ReadReport, Report as SalvageReport, Unit, WrittenReport,
};
