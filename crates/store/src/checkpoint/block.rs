//! The fixed parts of a checkpoint file.

use tickwheel_engine::{EngineState, Epoch, Seq, Timestamp};

use crate::segment::{Bucket, Level};

use crate::checksum::{Seeds, Use, crc};
use crate::codec::{DecodeError, Reader, put_varint, state, state_before_format_6, timestamp};
use crate::layout::{HEADER_BYTES, can_rise, header, le_u32, le_u64, read_own};

const MAGIC: [u8; 8] = *b"TWCHECKP";
pub(crate) const FORMAT: u32 = 2;

/// Bytes before a block's content: length (4), CRC-32C of all else (4), kind (4), zero (4), place in the file from 0 (8).
pub(super) const BLOCK_HEAD_BYTES: usize = 24;

/// The content of a block, with the number that the kind has in files. These numbers never change.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum BlockKind {
    /// Segments.
    Segments = 3,
    /// Rules in force.
    Rules = 4,
    /// Tasks that ended.
    Ended = 1,
    /// The end of the checkpoint.
    End = 5,
    /// The end of the checkpoint, as it was before format 6 of the directory.
    EndBefore = 2,
}

impl BlockKind {
    const ALL: [Self; 5] = [Self::Segments, Self::Rules, Self::Ended, Self::End, Self::EndBefore];
}

/// Where a checkpoint stands in the log: the frames after `frame` are to be read on top of it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Start {
    /// The last change of the last frame that is in the checkpoint as a whole.
    pub(crate) seq: Seq,
    /// The last frame that is in the checkpoint as a whole. Later frames may be in it in part.
    pub(crate) frame: u64,
    /// Frames after it are in files of this use or of later ones.
    pub(crate) generation: u64,
    /// The owner that wrote the checkpoint.
    pub(crate) epoch: Epoch,
}

pub(super) fn header_bytes(start: Start, number: u64, seeds: &Seeds) -> [u8; HEADER_BYTES] {
    let Start { seq, frame, generation, epoch } = start;
    let own = [number, seq.0, frame, generation, u64::from(epoch.0), 0];
    header(MAGIC, FORMAT, seeds.of(Use::Checkpoint(number)), own)
}

/// Reads where a checkpoint stands from its header; `Ok(None)` if the header is damaged, or the header of another checkpoint; `Err` has the
/// format if a later version wrote it.
pub(crate) fn read_start(bytes: &[u8], number: u64, seeds: &Seeds) -> Result<Option<Start>, u32> {
    let own = read_own(bytes, MAGIC, FORMAT, seeds.of(Use::Checkpoint(number)))?;
    Ok(own.and_then(|[found, seq, frame, generation, epoch, _]| {
        let epoch = u32::try_from(epoch).ok().filter(|epoch| *epoch < u32::MAX)?;
        let is_possible = found == number && can_rise(&[seq, frame, generation]);
        is_possible.then_some(Start { seq: Seq(seq), frame, generation, epoch: Epoch(epoch) })
    }))
}

/// Completes a block: `bytes` has room for the head in front, then the content. Returns its checksum.
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

/// How long the content of the block with this head is.
pub(super) fn block_length(head: &[u8; BLOCK_HEAD_BYTES]) -> u64 {
    u64::from(le_u32(head, 0))
}

/// The kind of a whole block, and its checksum; `None` if it is damaged or not the one that stands at this place.
pub(super) fn check_block(bytes: &[u8], index: u64, seed: u32) -> Option<(BlockKind, u32)> {
    let sum = block_sum(bytes, seed);
    if le_u32(bytes, 4) != sum || le_u64(bytes, 16) != index {
        return None;
    }
    let kind = BlockKind::ALL.into_iter().find(|kind| *kind as u32 == le_u32(bytes, 8))?;
    Some((kind, sum))
}

/// A segment that belongs to a checkpoint.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listed {
    pub(crate) generation: u64,
    pub(crate) bucket: Bucket,
    /// Whether the segment's records were in another segment before.
    pub(crate) moved: bool,
    /// Bytes of the file that count.
    pub(crate) len: u64,
    /// The segment's records, the dead among them too.
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

/// The facts about the whole checkpoint in its last block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct End {
    /// Segments.
    pub(crate) segments: u64,
    /// Records of ended tasks.
    pub(crate) ended: u64,
    /// The log had this frame when the last record was taken: a recovery that does not find it has lost it.
    pub(crate) last_frame: u64,
    /// The latest wall instant so far.
    pub(crate) wall: Timestamp,
    /// The state of the engine.
    pub(crate) state: EngineState,
    /// The checksum of the checksums of all blocks before it.
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

    /// The end in a block of this kind.
    pub(super) fn read(kind: BlockKind, content: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(content);
        let (segments, ended, last_frame) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let wall = timestamp(&mut reader)?;
        let ids_before = if kind == BlockKind::EndBefore { Some(reader.varint()?) } else { None };
        let sum = reader.number()?;
        let state = match ids_before {
            Some(ids) => state_before_format_6(ids, &mut reader)?,
            None => state(&mut reader)?,
        };
        let end = Self { segments, ended, last_frame, wall, state, sum };
        if reader.is_empty() { Ok(end) } else { Err(reader.error("bytes behind the end")) }
    }
}
