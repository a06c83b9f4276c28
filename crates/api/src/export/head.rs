//! The first and the last line of an export.

use crate::declare::{
    ValueCodec, body, count, flag, flat, has, instant, list, may, number, or, schema, text, unless,
};
use crate::text::bad_request::BadRequest;
use crate::text::portable::INTEGER_MAX;

/// The version of the format that this release writes, and the only one that it reads.
pub const EXPORT_FORMAT: u64 = 1;

body! {
    /// The header of an export.
    pub(crate) struct HeaderMembers: export "ExportHeader" {
        /// The version of the format.
        format: u64 = has(number(0, INTEGER_MAX).checked(is_known).described(|| schema::integer(EXPORT_FORMAT, EXPORT_FORMAT)));
        /// The other members of the header.
        header: ExportHeader = flat();
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "a rule is given the value as it is")]
fn is_known(path: &str, format: &u64) -> Result<(), BadRequest> {
    if *format == EXPORT_FORMAT {
        return Ok(());
    }
    let what = format!("is {format}; this release reads {EXPORT_FORMAT}");
    Err(BadRequest::member(path, what, "import the file with the release that wrote it, or a later one"))
}

body! {
    /// The first line of an export: where, when and with which limits it was made.
    pub struct ExportHeader: group {
        /// When the export began, by the server's clock.
        at_ms as "at": i64 = has(instant());
        /// The release of the server that wrote the file.
        release: String = has(text(64, "0.3.0"));
        /// Whether the server's clock was a virtual one.
        virtual_clock: bool = or(false, flag());
        /// The name of the data directory: 16 random hex digits that tell it from others.
        ///
        /// `None`: the file does not say.
        store: Option<String> = may(text(16, "text"));
        /// The namespaces or queues that the export is limited to. Absent if it has all of them.
        scope: Vec<String> = unless(Vec::new(), list(text(201, "shop"), "write a list of namespaces"));
        /// The queue that the export is limited to. Absent if it is not limited to one queue.
        queue: Option<String> = may(text(200, "text"));
        /// The ids of the exported tasks are below this number, except for tasks that were put while the export was written.
        ids_below: u64 = unless(0, count());
    }
}

body! {
    /// The last line of an export: how many lines of each kind a complete file has.
    #[derive(Copy, Default)]
    pub struct ExportEnd: export "ExportEnd" {
        /// Number of lines with settings of a queue.
        queues: u64 = has(count());
        /// Number of live tasks.
        tasks: u64 = has(count());
        /// Number of dead tasks.
        dead: u64 = has(count());
        /// Number of schedules.
        schedules: u64 = has(count());
    }
}
