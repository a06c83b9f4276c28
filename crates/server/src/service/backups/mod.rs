//! `/v1/backups`: copies that the server makes of its own directory while it serves, when it is asked to and by a schedule.
//!
//! One backup is under way at a time, on a thread of its own; [`keeper`] starts it, follows it and knows how the last ones went. What is
//! whole stands in the directory and nowhere else, so a restart knows as much as the life before.

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
