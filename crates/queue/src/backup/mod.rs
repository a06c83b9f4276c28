//! Backups of data directories, in use or not; restoring a backup; and the salvage of a damaged directory.

mod checked;
mod copy;
mod manifest;
mod place_lock;
mod report;
mod running;
mod salvage;
mod salvage_error;
mod salvage_members;
mod salvage_steps;
mod shards;
mod stopped;
mod throttle;
mod watch;

pub use copy::UNFINISHED;
pub use manifest::Manifest;
pub use place_lock::PlaceLock;
pub use report::{BackupError, BackupReport};
pub(crate) use running::Source;
pub use salvage::salvage;
pub use salvage_error::SalvageError;
pub(crate) use shards::copy_all;
pub use shards::{check_found, check_shards};
pub use stopped::{backup, restore};
pub use tickwheel_engine::RuleName;
pub use tickwheel_store::identity;
pub use tickwheel_store::salvage::{
    Fate, Loss, LostRule, LostTask, MayHoldEnded, Progress, ReadReport, Report as SalvageReport, RuleFate,
    Superseded, Unit, WrittenReport,
};
pub use watch::{BackupPhase, BackupProgress, BackupWatch};

pub use crate::clock::time::system_now;
