//! `/v1/backups`: copies of the data directory that the server makes while it serves, on request and by a schedule.
//!
//! One backup runs at a time, on its own thread. [`keeper`] starts it, follows it and knows the last results. The
//! directory alone says which backups are whole, so a restart knows as much as before.

mod figures;
mod keeper;
mod name;
mod place;
mod schedule;
mod told;
mod whole;

pub(crate) use figures::BackupFigures;
pub(crate) use keeper::{Backups, Begun, IN_MEMORY, NO_DIR, StopBackups};
pub(crate) use place::BackupDir;
pub use place::BackupDirError;
