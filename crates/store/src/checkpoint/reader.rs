//! Reads a checkpoint.

use tickwheel_engine::{Ended, RuleEffect};

use super::block::{BLOCK_HEAD_BYTES, End, FORMAT, Listed, Start, block_length, check_block, read_start};
use super::pieces::Pieces;
use crate::checksum::{Seeds, Use, crc};
use crate::codec::Names;
use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::layout::{HEADER_BYTES, checkpoint_file, zeroes};

/// The content of a checkpoint.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) segments: Vec<Listed>,
    pub(crate) ended: Vec<Ended>,
    pub(crate) rules: Vec<RuleEffect>,
    /// The position of the checkpoint in the log.
    pub(crate) start: Start,
    /// The facts about the whole checkpoint.
    pub(crate) end: End,
}

/// The place in a file that makes a checkpoint unusable, and the reason.
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

/// Reads the checkpoint with this number. Returns `Ok(Err(..))` if the checkpoint is damaged.
///
/// # Errors
/// If the disk fails, or a later version wrote the checkpoint.
pub(crate) fn load<D: Disk>(
    disk: &mut D,
    number: u64,
    seeds: &Seeds,
) -> Result<Result<Loaded, Damage>, OpenError> {
    let file = checkpoint_file(number);
    let loaded = read(disk, &file, number, seeds);
    disk.close(&file);
    match loaded {
        Ok(loaded) => Ok(Ok(loaded)),
        Err(Failure::Open(error)) => Err(error),
        Err(Failure::Damaged { offset, what }) => Ok(Err(Damage { file: file.to_string(), offset, what })),
    }
}

fn read<D: Disk>(disk: &mut D, file: &str, number: u64, seeds: &Seeds) -> Result<Loaded, Failure> {
    let len = disk.len(file)?;
    let damaged = |offset: u64, what: &str| Failure::Damaged { offset, what: what.to_owned() };
    let mut header = [0; HEADER_BYTES];
    disk.read(file, 0, &mut header)?;
    let start = match read_start(&header, number, seeds) {
        Ok(Some(start)) => start,
        Ok(None) => return Err(damaged(0, "the header's checksum does not match")),
        Err(found) => return Err(Failure::Open(OpenError::other_format(file, found, FORMAT))),
    };
    let seed = seeds.of(Use::Checkpoint(number));
    let mut names = Names::new();
    let mut pieces = Pieces::default();
    let mut sum = 0;
    let mut offset = HEADER_BYTES as u64;
    for index in 0.. {
        let mut head = [0; BLOCK_HEAD_BYTES];
        if disk.read(file, offset, &mut head)? < BLOCK_HEAD_BYTES {
            return Err(damaged(offset, "it ends before its last block"));
        }
        let bytes = BLOCK_HEAD_BYTES as u64 + block_length(&head);
        if bytes > len.saturating_sub(offset) {
            return Err(damaged(offset, "a block reaches beyond the end"));
        }
        let mut block = zeroes(bytes);
        if disk.read(file, offset, &mut block)? < block.len() {
            return Err(damaged(offset, "it ends before its last block"));
        }
        let Some((kind, block_sum)) = check_block(&block, index, seed) else {
            return Err(damaged(offset, "a block's checksum does not match"));
        };
        pieces
            .take(kind, &block[BLOCK_HEAD_BYTES..], &mut names)
            .map_err(|error| damaged(offset, &error.to_string()))?;
        if let Some(end) = pieces.end {
            let Pieces { segments, ended, rules, .. } = pieces;
            let segments = segments.unwrap_or_default();
            if (end.segments, end.ended, end.sum) != (segments.len() as u64, ended.len() as u64, sum) {
                return Err(damaged(offset, "its end does not match what is before it"));
            }
            return Ok(Loaded { segments, ended, rules, start, end });
        }
        sum = crc(sum, &block_sum.to_le_bytes());
        offset += bytes;
    }
    unreachable!("a file has fewer than 2^64 blocks")
}
