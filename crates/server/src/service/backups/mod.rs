//! `/v1/backups`: copies of the data directory that the server makes while it serves, on request and by a schedule.
//!
//! One backup runs at a time, on its own thread. [`keeper`] starts it, follows it and knows the last results. The
//! directory alone says which backups are whole, so a restart knows as much as before.

mod backup_dir;
mod figures;
mod keeper;
mod log_lines;
mod name;
mod no_backups;
mod schedule;
mod whole;

pub(crate) use backup_dir::BackupDir;
pub use backup_dir::BackupDirError;
pub(crate) use figures::BackupFigures;
pub(crate) use keeper::{Backups, Begun, StopBackups};
pub(crate) use no_backups::NoBackups;
