//! The examination of a data directory: reports its content and its problems, and changes no file.

mod checkpoints;
mod directory;
mod examination;
mod examine;
mod examine_dir;
mod logs;
mod members;
mod problem;
mod records;
mod segments;

pub use directory::{Directory, DirectoryPin};
pub use examination::{CheckpointFile, Depth, Examination, LogFile, Member, Needed, SegmentFile, Span};
pub use examine::{BACKUP_MANIFEST, examine};
pub use examine_dir::examine_dir;
pub use members::{examine_stamps, root_above};
pub use problem::Problem;
