//! One record, read again.

use std::sync::Arc;

use tickwheel_engine::Task;

use super::index::Spot;
use super::read::RecordFile;
use super::source::Source;
use crate::codec::{Names, OP_HEAD_BYTES, Op, split_ops};
use crate::disk::Disk;
use crate::layout::le_u32;
use crate::segment::{RECORD_HEAD_BYTES, read_record, record_bytes};

/// Reads the record at a place that the first pass found; `None` if it is not there any more.
pub(super) fn fetch<D: Disk>(
    source: &mut Source<'_, D>,
    files: &[RecordFile],
    spot: Spot,
    names: &mut Names,
) -> Option<Task> {
    let RecordFile { name, seed } = files.get(spot.file as usize)?;
    let Some(seed) = seed else { return fetch_op(source, name, spot.offset, names) };
    let head = source.next(name, spot.offset, RECORD_HEAD_BYTES as u64);
    let bytes = record_bytes(head)?;
    let record = source.next(name, spot.offset, bytes);
    read_record(record, spot.offset, *seed, names).ok().map(|(task, _)| task)
}

/// The same with the body that stands elsewhere.
pub(super) fn fetch_with_body<D: Disk>(
    source: &mut Source<'_, D>,
    files: &[RecordFile],
    spot: Spot,
    body: Option<Spot>,
    names: &mut Names,
) -> Option<Task> {
    let mut task = fetch(source, files, spot, names)?;
    if let Some(body) = body {
        // Another window: the next record stands behind this one.
        task.body = Arc::clone(&fetch(&mut source.beside(), files, body, names)?.body);
    }
    Some(task)
}

fn fetch_op<D: Disk>(source: &mut Source<'_, D>, name: &str, at: u64, names: &mut Names) -> Option<Task> {
    let head = source.next(name, at, OP_HEAD_BYTES as u64);
    let bytes = OP_HEAD_BYTES as u64 + u64::from(le_u32(head.first_chunk::<OP_HEAD_BYTES>()?, 1));
    let record = source.next(name, at, bytes);
    match split_ops(record, names).next()?.op {
        Ok(Op::Stored(task) | Op::StoredBodyKnown(task)) => Some(task),
        _ => None,
    }
}
