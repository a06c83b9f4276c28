//! The examination of a data directory: reports its content and its problems, and changes no file.

mod checkpoints;
mod directory;
mod examination;
mod examine;
mod logs;
mod problem;
mod records;
mod segments;

pub use directory::{Directory, DirectoryPin};
pub use examination::{CheckpointFile, Depth, Examination, LogFile, Needed, SegmentFile, Span};
pub use examine::{BACKUP_MANIFEST, examine, examine_dir};
pub use problem::Problem;
