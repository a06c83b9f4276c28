//! One task in a segment.

use std::sync::Arc;

use tickwheel_engine::{DueKey, QueueName, Task};

use crate::checksum::crc;
use crate::codec::{Names, Op, TaskHead, put_stored, read_ops, stored_head};
use crate::layout::le_u32;

/// Bytes before a record's content: its checksum (4), its tag (1), its length (4).
pub(crate) const RECORD_HEAD_BYTES: usize = 9;

/// The reason why bytes are no record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BadRecord {
    /// The record has at least this many bytes, and the input has fewer.
    Short(u64),
    /// The record does not check out.
    Damaged(String),
}

/// Appends a task's record, which will be written at `offset` of its file.
pub(crate) fn put_record(out: &mut Vec<u8>, task: &Task, offset: u64, seed: u32) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    put_stored(out, task, true);
    let sum = record_sum(&out[at + 4..], offset, seed);
    out[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

/// Returns the checksum of a record. The checksum covers the offset, so a record that a disk returns for another offset does not check out.
fn record_sum(bytes: &[u8], offset: u64, seed: u32) -> u32 {
    crc(crc(seed, &offset.to_le_bytes()), bytes)
}

/// Returns the length (bytes) of the record that begins with `head`; `None` if `head` is shorter than [`RECORD_HEAD_BYTES`].
pub(crate) fn record_bytes(head: &[u8]) -> Option<u64> {
    head.first_chunk::<RECORD_HEAD_BYTES>().map(|head| RECORD_HEAD_BYTES as u64 + u64::from(le_u32(head, 5)))
}

/// Reads the record at the beginning of `bytes`, which is at `offset` of its file. Returns the task and the length of the record (bytes).
pub(crate) fn read_record(
    bytes: &[u8],
    offset: u64,
    seed: u32,
    names: &mut Names,
) -> Result<(Task, usize), BadRecord> {
    let whole = checked(bytes, offset, seed)?;
    Ok((decode(whole, names)?, whole.len()))
}

/// A record that was read whole, or only its head if its task is of another queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Skimmed {
    Task(Arc<Task>),
    /// A task of another queue.
    Other {
        id: u64,
        place: DueKey,
    },
}

impl Skimmed {
    pub(crate) fn id(&self) -> u64 {
        match self {
            Self::Task(task) => task.id,
            Self::Other { id, .. } => *id,
        }
    }

    pub(crate) fn place(&self) -> DueKey {
        match self {
            Self::Task(task) => DueKey::of(task),
            Self::Other { place, .. } => *place,
        }
    }
}

/// Checks the record at the beginning of `bytes`. Decodes all of it if its task is in the queue `wanted`, or if no queue is given; else
/// only its head, without allocation. Also returns the length of the record (bytes).
pub(crate) fn skim_record(
    bytes: &[u8],
    offset: u64,
    seed: u32,
    names: &mut Names,
    wanted: Option<&QueueName>,
) -> Result<(Skimmed, usize), BadRecord> {
    let whole = checked(bytes, offset, seed)?;
    let head = wanted.and_then(|wanted| Some((stored_head(&whole[4..])?, wanted)));
    let skimmed = match head {
        Some((TaskHead { id, place, queue }, wanted)) if queue != wanted.as_str() => {
            Skimmed::Other { id, place }
        }
        _ => Skimmed::Task(Arc::new(decode(whole, names)?)),
    };
    Ok((skimmed, whole.len()))
}

/// Checks the checksum of the record at the beginning of `bytes`, which is at `offset` of its file. Returns the bytes of the record.
fn checked(bytes: &[u8], offset: u64, seed: u32) -> Result<&[u8], BadRecord> {
    let Some(length) = record_bytes(bytes) else { return Err(BadRecord::Short(RECORD_HEAD_BYTES as u64)) };
    let whole = usize::try_from(length).ok().and_then(|length| bytes.get(..length));
    let Some(whole) = whole else { return Err(BadRecord::Short(length)) };
    if le_u32(whole, 0) != record_sum(&whole[4..], offset, seed) {
        return Err(BadRecord::Damaged("a record's checksum does not match".to_owned()));
    }
    Ok(whole)
}

fn decode(whole: &[u8], names: &mut Names) -> Result<Task, BadRecord> {
    let mut read = None;
    let decoded = read_ops(&whole[4..], names, |op| {
        read = Some(op);
        Ok(())
    });
    match (decoded, read) {
        (Ok(()), Some(Op::Stored(task))) => Ok(task),
        (Ok(()), _) => Err(BadRecord::Damaged("a record that no segment has".to_owned())),
        (Err(error), _) => Err(BadRecord::Damaged(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_as_written_at_its_own_place_only() {
        let task = crate::conformance::sample_task(7, 300, "shop/close", "order:1", 1_506_902_400_250);
        let mut bytes = Vec::new();
        put_record(&mut bytes, &task, 4_711, 9);
        let mut names = Names::new();
        assert_eq!(read_record(&bytes, 4_711, 9, &mut names), Ok((task, bytes.len())));
        for (offset, seed) in [(4_712, 9), (4_711, 8)] {
            let read = read_record(&bytes, offset, seed, &mut names);
            assert!(matches!(read, Err(BadRecord::Damaged(_))), "{read:?}");
        }
        for cut in 0..bytes.len() {
            let read = read_record(&bytes[..cut], 4_711, 9, &mut names);
            assert!(matches!(read, Err(BadRecord::Short(_))), "cut at {cut}: {read:?}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(read_record(&damaged, 4_711, 9, &mut names).is_err(), "bit {bit} went unseen");
        }
    }

    #[test]
    fn a_record_of_another_queue_is_checked_and_its_head_read() {
        let task = crate::conformance::sample_task(7, 300, "shop/close", "order:1", 1_506_902_400_250);
        let mut bytes = Vec::new();
        put_record(&mut bytes, &task, 4_711, 9);
        let mut names = Names::new();
        let mut skim = |bytes: &[u8], wanted: &str| {
            skim_record(bytes, 4_711, 9, &mut names, Some(&QueueName::new(wanted).expect("a name")))
        };
        assert_eq!(skim(&bytes, "shop/close"), Ok((Skimmed::Task(Arc::new(task.clone())), bytes.len())));
        let other = Skimmed::Other { id: task.id, place: DueKey::of(&task) };
        assert_eq!(skim(&bytes, "shop/closed"), Ok((other, bytes.len())));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(skim(&damaged, "shop/closed").is_err(), "bit {bit} went unseen");
        }
    }
}
