//! Gets everything that can still be read out of a damaged data directory. Nothing in the directory is changed.
//!
//! [`read`] is the first pass: it reads the files, and learns where the newest record of each task is, and which parts are lost.
//! [`write()`] is the second pass: it copies the newest records into a new directory.

mod base;
mod fetch;
mod found;
mod index;
mod keys;
mod logs;
mod losses;
mod lost_shard;
mod names;
mod read;
mod report;
mod rules;
mod segments;
mod source;
mod write;

pub use found::{Found, Progress};
pub use lost_shard::Reached;
pub use read::{read, read_member};
pub use report::{
    Fate, Loss, LostRule, LostTask, MayHoldEnded, ReadReport, Report, RuleFate, Superseded, Unit,
    WrittenReport,
};
#[doc(hidden)]
pub use write::write_as;
pub use write::{WriteError, write};
