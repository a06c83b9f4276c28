//! [`Pieces`]: the content of a checkpoint, as far as its blocks can be read.

use tickwheel_engine::{Ended, RuleEffect};

use super::block::{BLOCK_HEAD_BYTES, BlockKind, End, Listed, block_length, check_block};
use crate::checksum::{Seeds, Use};
use crate::codec::{DecodeError, Names, Op, Reader, read_ops};
use crate::layout::{HEADER_BYTES, le_u32, le_u64};

/// The content of the blocks whose checksum is right. An opening needs all blocks of a checkpoint. A salvage uses the blocks that are left.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// The list of segments; `None`: no block with the list was read.
    pub(crate) segments: Option<Vec<Listed>>,
    pub(crate) rules: Vec<RuleEffect>,
    pub(crate) ended: Vec<Ended>,
    pub(crate) end: Option<End>,
    /// Number of records in the blocks of rules and of ended tasks.
    pub(crate) records: u64,
    /// The parts of the file that could not be read.
    pub(crate) holes: Vec<Hole>,
}

/// A part of a checkpoint file that could not be read as a block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hole {
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The content that may have been in the hole, as a part of a sentence.
    pub(crate) held: &'static str,
}

/// Reads the blocks whose checksum is right, up to the end of the checkpoint. Behind a damaged block, searches for the next good block byte
/// by byte.
pub(crate) fn read_pieces(file: &[u8], number: u64, seeds: &Seeds) -> Pieces {
    let seed = seeds.of(Use::Checkpoint(number));
    let mut pieces = Pieces::default();
    let mut names = Names::new();
    // A file that was cut may be shorter than a header.
    let (mut at, mut index) = (HEADER_BYTES.min(file.len()), 0);
    let mut before = None;
    while pieces.end.is_none() {
        let Some((found_at, found, kind, bytes)) = find_block(file, at, index, seed) else {
            let held = held(before, None);
            pieces.holes.push(Hole { from: at as u64, to: file.len() as u64, held });
            break;
        };
        if found_at > at {
            let held = held(before, Some(kind));
            pieces.holes.push(Hole { from: at as u64, to: found_at as u64, held });
        }
        let content = &file[found_at + BLOCK_HEAD_BYTES..found_at + bytes];
        if pieces.take(kind, content, &mut names).is_err() {
            let held = "records of a later format";
            pieces.holes.push(Hole { from: found_at as u64, to: (found_at + bytes) as u64, held });
        }
        (at, index, before) = (found_at + bytes, found + 1, Some(kind));
    }
    pieces
}

impl Pieces {
    /// Whether the whole checkpoint was read.
    pub(crate) fn is_whole(&self) -> bool {
        self.holes.is_empty() && self.segments.is_some() && self.end.is_some()
    }

    /// Takes in the content of a block.
    ///
    /// # Errors
    /// At the first bytes that are no record of a checkpoint; the records before these bytes stay taken in. Also if the block has records
    /// of a kind that its head does not name; all records of the block stay taken in.
    pub(super) fn take(
        &mut self,
        kind: BlockKind,
        content: &[u8],
        names: &mut Names,
    ) -> Result<(), DecodeError> {
        match kind {
            BlockKind::Segments => {
                let mut reader = Reader::new(content);
                let list = self.segments.get_or_insert_default();
                while !reader.is_empty() {
                    list.push(Listed::read(&mut reader)?);
                }
            }
            BlockKind::Rules | BlockKind::Ended => {
                let misplaced = || DecodeError { what: "a record that no checkpoint has there", at: 0 };
                let mut fits = true;
                read_ops(content, names, |op| {
                    let kind_of_op = match op {
                        Op::Ended(ended) => {
                            self.ended.push(ended);
                            BlockKind::Ended
                        }
                        Op::Rule(effect) => {
                            self.rules.push(effect);
                            BlockKind::Rules
                        }
                        Op::Stored(_) | Op::StoredBodyKnown(_) | Op::State(_) => return Err(misplaced()),
                    };
                    fits &= kind_of_op == kind;
                    self.records += 1;
                    Ok(())
                })?;
                if !fits {
                    return Err(misplaced());
                }
            }
            BlockKind::End => self.end = Some(End::read(content)?),
        }
        Ok(())
    }
}

/// Finds the first block that begins at or behind the byte `at` and whose index is not below `index`. Returns the offset of the block, its
/// index, its kind, and its length with the head (bytes).
fn find_block(file: &[u8], at: usize, index: u64, seed: u32) -> Option<(usize, u64, BlockKind, usize)> {
    (at..file.len()).find_map(|at| {
        let head = file[at..].first_chunk::<BLOCK_HEAD_BYTES>()?;
        // Each block takes some bytes of the file, so an index cannot be higher than `index` plus the bytes of the file.
        let found = le_u64(head, 16);
        let may_be = le_u32(head, 12) == 0 && (1..=5).contains(&le_u32(head, 8)) && found >= index;
        if !may_be || found > index + file.len() as u64 {
            return None;
        }
        let bytes = usize::try_from(BLOCK_HEAD_BYTES as u64 + block_length(head)).ok()?;
        let (kind, _) = check_block(file[at..].get(..bytes)?, found, seed)?;
        Some((at, found, kind, bytes))
    })
}

/// The content of a hole that had only ended tasks.
pub(crate) const ENDED_TASKS: &str = "ended tasks";
/// The content of a hole that may have had blocks of every kind.
pub(crate) const ALL_BLOCKS: &str = "the list of segments and what follows it";

/// Returns the content that the blocks between these two blocks may have had. The list of segments comes first, then rules, then ended
/// tasks.
fn held(before: Option<BlockKind>, behind: Option<BlockKind>) -> &'static str {
    match (before, behind) {
        (None, Some(BlockKind::Rules)) => "the list of segments",
        (None, _) => ALL_BLOCKS,
        (_, Some(BlockKind::Rules)) => "settings, schedules and jobs",
        (Some(BlockKind::Ended), Some(_)) => ENDED_TASKS,
        (Some(BlockKind::Ended), None) => "ended tasks or the end with the state of the engine",
        (_, Some(_)) => "settings, schedules, jobs or ended tasks",
        (_, None) => "settings, schedules, jobs, ended tasks or the end with the state of the engine",
    }
}
