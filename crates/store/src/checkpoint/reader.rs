//! Reads a checkpoint.

use tickwheel_engine::{TaskEffect, Timestamp};

use super::block::{
    BLOCK_HEAD_BYTES, BlockKind, End, FORMAT, Start, block_length, check_block, read_header_bytes,
};
use crate::checksum::{Seeds, Use, crc};
use crate::codec::{DecodeError, Names, Op, read_ops};
use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::layout::{HEADER_BYTES, checkpoint_file};
use crate::table::Records;

/// What a checkpoint had.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) records: Records,
    pub(crate) start: Start,
    /// The log must reach this frame.
    pub(crate) last_frame: u64,
    pub(crate) wall: Timestamp,
}

/// A checkpoint that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Damage {
    pub(crate) file: String,
    pub(crate) offset: u64,
    pub(crate) what: String,
}

/// Why a checkpoint was not loaded.
#[derive(Debug)]
enum Failure {
    Open(OpenError),
    Damaged { offset: u64, what: String },
}

impl From<DiskError> for Failure {
    fn from(error: DiskError) -> Self {
        Self::Open(error.into())
    }
}

/// Reads the checkpoint with this number; `Ok(Err(..))` if it is damaged.
///
/// # Errors
/// If the disk fails or a later version wrote it.
pub(crate) fn load<D: Disk>(
    disk: &mut D,
    number: u64,
    seeds: &Seeds,
    history_per_queue: usize,
) -> Result<Result<Loaded, Damage>, OpenError> {
    let file = checkpoint_file(number);
    let loaded = read(disk, &file, number, seeds, history_per_queue);
    disk.close(&file);
    match loaded {
        Ok(loaded) => Ok(Ok(loaded)),
        Err(Failure::Open(error)) => Err(error),
        Err(Failure::Damaged { offset, what }) => Ok(Err(Damage { file: file.to_string(), offset, what })),
    }
}

fn read<D: Disk>(
    disk: &mut D,
    file: &str,
    number: u64,
    seeds: &Seeds,
    history_per_queue: usize,
) -> Result<Loaded, Failure> {
    let len = disk.len(file)?;
    let damaged = |offset: u64, what: &str| Failure::Damaged { offset, what: what.to_owned() };
    let mut header = [0; HEADER_BYTES];
    disk.read(file, 0, &mut header)?;
    let start = match read_header_bytes(&header, number, seeds) {
        Ok(Some(start)) => start,
        Ok(None) => return Err(damaged(0, "the header's checksum does not match")),
        Err(found) => {
            let file = file.to_owned();
            return Err(Failure::Open(OpenError::NewerFormat { file, found, known: FORMAT }));
        }
    };
    let seed = seeds.of(Use::Checkpoint(number));
    let mut records = Records::new(history_per_queue);
    let mut names = Names::new();
    let (mut tasks, mut ended) = (0, 0);
    let mut sum = 0;
    let mut offset = HEADER_BYTES as u64;
    let mut block = Vec::new();
    for index in 0.. {
        let mut head = [0; BLOCK_HEAD_BYTES];
        if disk.read(file, offset, &mut head)? < BLOCK_HEAD_BYTES {
            return Err(damaged(offset, "it ends before its last block"));
        }
        let bytes = BLOCK_HEAD_BYTES as u64 + block_length(&head);
        if bytes > len.saturating_sub(offset) {
            return Err(damaged(offset, "a block reaches beyond the end"));
        }
        block.resize(usize::try_from(bytes).expect("a file that fits a disk fits the memory's addresses"), 0);
        if disk.read(file, offset, &mut block)? < block.len() {
            return Err(damaged(offset, "it ends before its last block"));
        }
        let Some((kind, block_sum)) = check_block(&block, index, seed) else {
            return Err(damaged(offset, "a block's checksum does not match"));
        };
        let content = &block[BLOCK_HEAD_BYTES..];
        let decoded = |error: DecodeError| Failure::Damaged { offset, what: error.to_string() };
        match kind {
            BlockKind::Records => {
                read_ops(content, &mut names, |op| {
                    let effect = match op {
                        Op::Stored(task) => {
                            tasks += 1;
                            TaskEffect::Stored { task: task.into(), body_known: false }
                        }
                        Op::Ended(record) => {
                            ended += 1;
                            TaskEffect::Ended(record)
                        }
                        Op::StoredBodyKnown(_) | Op::Counters(_) => {
                            return Err(DecodeError { what: "a record that no checkpoint has", at: 0 });
                        }
                    };
                    records.apply(&effect);
                    Ok(())
                })
                .map_err(decoded)?;
                sum = crc(sum, &block_sum.to_le_bytes());
                offset += bytes;
            }
            BlockKind::End => {
                let end = End::read(content).map_err(decoded)?;
                if (end.tasks, end.ended, end.sum) != (tasks, ended, sum) {
                    return Err(damaged(offset, "its end does not match what is before it"));
                }
                records.raise_counters(end.counters);
                return Ok(Loaded { records, start, last_frame: end.last_frame, wall: end.wall });
            }
        }
    }
    unreachable!("a file has fewer than 2^64 blocks")
}
