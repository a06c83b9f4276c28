//! Segments: each is a file with the tasks of one span of due time.

mod bucket;
mod footer;
mod header;
mod record;
mod run;
mod section;
mod writer;

pub(crate) use bucket::{Bucket, Level};
pub(crate) use footer::{Entry, Footer};
pub(crate) use header::{FORMAT, SegmentHeader, read_segment_header};
pub(crate) use record::{BadRecord, RECORD_HEAD_BYTES, Skimmed, read_record, record_bytes, skim_record};
pub(crate) use run::Run;
pub(crate) use section::{Section, SectionKind, TAIL_BYTES, Tail, put_tombstones, read_tombstones};
pub(crate) use writer::{RunWriter, Written};
