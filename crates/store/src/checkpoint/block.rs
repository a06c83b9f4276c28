//! The fixed parts of a checkpoint file: the header, the heads of the blocks, the entries of the list of segments, and the end.

use tickwheel_engine::{EngineState, Epoch, Seq, Timestamp};

use crate::segment::{Bucket, Level};

use crate::checksum::{Seeds, Use, crc};
use crate::codec::{DecodeError, Reader, put_varint, state, timestamp};
use crate::layout::{HEADER_BYTES, can_rise, header, le_u32, le_u64, read_own};

const MAGIC: [u8; 8] = *b"TWCHECKP";
pub(crate) const FORMAT: u32 = 1;

/// The number of bytes before a block's content: length of the content (4), CRC-32C of the rest of the block (4), kind (4), zero (4), index
/// of the block from 0 (8).
pub(super) const BLOCK_HEAD_BYTES: usize = 24;

/// The kind of a block's content, with the number of the kind in files. These numbers never change.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum BlockKind {
    /// The list of segments.
    Segments = 1,
    /// The rules in force.
    Rules = 2,
    /// Tasks that ended.
    Ended = 3,
    /// The end of the checkpoint.
    End = 4,
}

impl BlockKind {
    const ALL: [Self; 4] = [Self::Segments, Self::Rules, Self::Ended, Self::End];
}

/// The position of a checkpoint in the log. A recovery loads the checkpoint, and then applies the frames after `frame`.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Start {
    /// The last change of the frame `frame`.
    pub(crate) seq: Seq,
    /// All changes of this frame and of earlier frames are in the checkpoint. Of later frames, some changes may be in the checkpoint.
    pub(crate) frame: u64,
    /// The frames after `frame` are in log files of this generation or of later ones.
    pub(crate) generation: u64,
    /// The epoch of the owner that wrote the checkpoint.
    pub(crate) epoch: Epoch,
}

pub(super) fn header_bytes(start: Start, number: u64, seeds: &Seeds) -> [u8; HEADER_BYTES] {
    let Start { seq, frame, generation, epoch } = start;
    let own = [number, seq.0, frame, generation, u64::from(epoch.0), 0];
    header(MAGIC, FORMAT, seeds.of(Use::Checkpoint(number)), own)
}

/// Reads the position of a checkpoint in the log from the header of the checkpoint. Returns `Ok(None)` if the header is damaged, or belongs
/// to another checkpoint. Returns `Err` with the format if a later version wrote the header.
pub(crate) fn read_start(bytes: &[u8], number: u64, seeds: &Seeds) -> Result<Option<Start>, u32> {
    let own = read_own(bytes, MAGIC, FORMAT, seeds.of(Use::Checkpoint(number)))?;
    Ok(own.and_then(|[found, seq, frame, generation, epoch, _]| {
        let epoch = u32::try_from(epoch).ok().filter(|epoch| *epoch < u32::MAX)?;
        let is_possible = found == number && can_rise(&[seq, frame, generation]);
        is_possible.then_some(Start { seq: Seq(seq), frame, generation, epoch: Epoch(epoch) })
    }))
}

/// Fills in the head of a block. `bytes` has space for the head, and then the content. Returns the block's checksum.
pub(super) fn stamp_block(bytes: &mut [u8], kind: BlockKind, index: u64, seed: u32) -> u32 {
    let length =
        u32::try_from(bytes.len() - BLOCK_HEAD_BYTES).expect("a block is one step and one task long");
    bytes[0..4].copy_from_slice(&length.to_le_bytes());
    bytes[8..12].copy_from_slice(&(kind as u32).to_le_bytes());
    bytes[16..24].copy_from_slice(&index.to_le_bytes());
    let sum = block_sum(bytes, seed);
    bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    sum
}

fn block_sum(bytes: &[u8], seed: u32) -> u32 {
    crc(crc(seed, &bytes[..4]), &bytes[8..])
}

/// Returns the length (bytes) of the content of the block with this head.
pub(super) fn block_length(head: &[u8; BLOCK_HEAD_BYTES]) -> u64 {
    u64::from(le_u32(head, 0))
}

/// Checks a whole block. Returns its kind and its checksum; `None` if the block is damaged, has another index, or has a kind that does not
/// exist.
pub(super) fn check_block(bytes: &[u8], index: u64, seed: u32) -> Option<(BlockKind, u32)> {
    let sum = block_sum(bytes, seed);
    if le_u32(bytes, 4) != sum || le_u64(bytes, 16) != index {
        return None;
    }
    let kind = BlockKind::ALL.into_iter().find(|kind| *kind as u32 == le_u32(bytes, 8))?;
    Some((kind, sum))
}

/// A segment in the list of a checkpoint.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub(crate) generation: u64,
    pub(crate) bucket: Bucket,
    /// Whether the segment's records were in another segment before.
    pub(crate) moved: bool,
    /// The length of the finished runs in the file (bytes).
    pub(crate) len: u64,
    /// Number of the segment's records, live and dead.
    pub(crate) records: u64,
}

impl Listed {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        let Self { generation, bucket: Bucket { level, index }, moved, len, records } = self;
        for number in [generation, level as u64, index, u64::from(moved), len, records] {
            put_varint(out, number);
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let generation = reader.varint()?;
        let level =
            Level::from_number(reader.varint()?).ok_or_else(|| reader.error("a level of a later format"))?;
        let bucket = Bucket { level, index: reader.varint()? };
        Ok(Self {
            generation,
            bucket,
            moved: reader.varint()? != 0,
            len: reader.varint()?,
            records: reader.varint()?,
        })
    }
}

/// The content of the last block: facts about the whole checkpoint.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct End {
    /// Number of segments in the list.
    pub(crate) segments: u64,
    /// Number of records of ended tasks.
    pub(crate) ended: u64,
    /// The last synced frame of the log when the end of the checkpoint was written. If a recovery does not find this frame, the frame was
    /// lost.
    pub(crate) last_frame: u64,
    /// The latest instant of the wall clock that the log had when the end of the checkpoint was written.
    pub(crate) wall: Timestamp,
    /// The state of the engine.
    pub(crate) state: EngineState,
    /// The checksum over the checksums of all blocks before the end.
    pub(crate) sum: u32,
}

impl End {
    pub(super) fn put(self, out: &mut Vec<u8>) {
        let Self { segments, ended, last_frame, wall, state, sum } = self;
        for number in [segments, ended, last_frame, wall.as_tick(), u64::from(sum)] {
            put_varint(out, number);
        }
        out.extend_from_slice(&state.to_bytes());
    }

    /// Reads the end from the content of a block.
    pub(super) fn read(content: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(content);
        let (segments, ended, last_frame) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let wall = timestamp(&mut reader)?;
        let sum = reader.number()?;
        let state = state(&mut reader)?;
        let end = Self { segments, ended, last_frame, wall, state, sum };
        if reader.is_empty() { Ok(end) } else { Err(reader.error("bytes behind the end")) }
    }
}
