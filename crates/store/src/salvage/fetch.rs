//! Reads records a second time, at the offsets that the first pass found.

use std::sync::Arc;

use tickwheel_engine::Task;

use super::found::RecordFile;
use super::index::Spot;
use super::report::{Fate, Loss, LostTask, Unit};
use super::source::Source;
use crate::checksum::crc;
use crate::codec::{Names, OP_HEAD_BYTES, Op, split_ops};
use crate::disk::Disk;
use crate::layout::le_u32;
use crate::segment::{RECORD_HEAD_BYTES, read_record, record_bytes};

/// Reads the record at `spot`, which the first pass found. A failed read is tried once more. `None`: the disk does not give the same bytes
/// any more.
pub(super) fn fetch<D: Disk>(
    source: &mut Source<'_, D>,
    files: &[RecordFile],
    spot: Spot,
    names: &mut Names,
) -> Option<Task> {
    let RecordFile { name, seed } = files.get(spot.file as usize)?;
    let mut once = |source: &mut Source<'_, D>| match seed {
        Some(seed) => fetch_record(source, name, spot.offset, *seed, names),
        None => fetch_op(source, name, spot, names),
    };
    once(source).or_else(|| {
        // Some disks fail one read and succeed at the next one.
        source.forget();
        once(source)
    })
}

/// The result of [`fetch_with_body`].
pub(super) enum Fetched {
    /// The task is whole.
    Whole(Task),
    /// The record that has the body of this task cannot be read again. The task is returned without its body.
    Bodiless(Task),
    /// The record of the task cannot be read again.
    Gone,
}

/// Reads the record at `spot`. If `body` is given, the body of the task is in the record at `body`: reads that record too, and puts its
/// body into the task.
pub(super) fn fetch_with_body<D: Disk>(
    source: &mut Source<'_, D>,
    files: &[RecordFile],
    spot: Spot,
    body: Option<Spot>,
    names: &mut Names,
) -> Fetched {
    let Some(mut task) = fetch(source, files, spot, names) else { return Fetched::Gone };
    let Some(body) = body else { return Fetched::Whole(task) };
    source.change_window();
    let found = fetch(source, files, body, names);
    source.change_window();
    match found {
        Some(found) => {
            task.body = Arc::clone(&found.body);
            Fetched::Whole(task)
        }
        None => Fetched::Bodiless(task),
    }
}

/// Makes the loss of a record that was read in the first pass and cannot be read in the second. With `task`, the lost record is the one
/// that has the body of `task`.
pub(super) fn gone(files: &[RecordFile], spot: Spot, id: u64, task: Option<&Task>) -> Loss {
    let file = files.get(spot.file as usize).map_or("", |file| &*file.name);
    let part = if task.is_some() { "payload" } else { "record" };
    let what = format!("the {part} of task {id} was read once, and the disk fails to read it again");
    let mut loss = Loss::new(file, spot.offset, None, Unit::Record, what);
    loss.tasks_max = Some(1);
    let (queue, key) = (task.map(|task| task.queue.clone()), task.map(|task| task.key.clone()));
    loss.name(LostTask { id, queue, key, fate: Fate::Lost });
    loss
}

fn fetch_record<D: Disk>(
    source: &mut Source<'_, D>,
    name: &str,
    at: u64,
    seed: u32,
    names: &mut Names,
) -> Option<Task> {
    let head = source.next(name, at, RECORD_HEAD_BYTES as u64);
    let bytes = record_bytes(head)?;
    let record = source.next(name, at, bytes);
    read_record(record, at, seed, names).ok().map(|(task, _)| task)
}

fn fetch_op<D: Disk>(source: &mut Source<'_, D>, name: &str, spot: Spot, names: &mut Names) -> Option<Task> {
    let head = source.next(name, spot.offset, OP_HEAD_BYTES as u64);
    let bytes = OP_HEAD_BYTES as u64 + u64::from(le_u32(head.first_chunk::<OP_HEAD_BYTES>()?, 1));
    let record = source.next(name, spot.offset, bytes);
    if op_sum(record) != spot.sum {
        return None;
    }
    match split_ops(record, names).next()?.op {
        Ok(Op::Stored(task) | Op::StoredBodyKnown(task)) => Some(task),
        _ => None,
    }
}

/// Returns the checksum of a record of the log. It tells whether a later read gives the same bytes.
pub(super) fn op_sum(record: &[u8]) -> u32 {
    crc(0, record)
}
