//! The lines of an export: NDJSON with tasks, dead tasks, settings and schedules. `tickwheel export` writes them, and `tickwheel import` reads them.
//!
//! Each line is an object with exactly one member, whose name says what the line is. The first line is the header. The last line is the end with
//! its counts; a file without it is cut.

mod head;
mod import;
mod line;
mod queue;
pub mod replay;
mod schedule;
mod task;

pub(crate) use head::HeaderMembers;
pub use head::{EXPORT_FORMAT, ExportEnd, ExportHeader};
pub use import::{
    Existing, ExportQuery, ImportCounts, ImportEnd, ImportLine, ImportQuery, ImportResult, ImportRow, SkipWhy,
};
pub use line::{EXPORT_CURSOR_BYTES_MAX, ExportLine};
pub use queue::ExportQueue;
pub use schedule::ExportSchedule;
pub use task::{ExportDeath, ExportTask, TallyBody};
pub(crate) use task::{dead_schema, live_schema};
