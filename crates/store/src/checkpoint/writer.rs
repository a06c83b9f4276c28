//! Writes a checkpoint in bounded steps, while commits go on.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use tickwheel_engine::{EngineState, QueueName, Rule, RuleName, Seq, Timestamp};

use super::block::{BLOCK_HEAD_BYTES, BlockKind, End, Listed, Start, header_bytes, stamp_block};
use crate::checksum::{Seeds, Use, crc};
use crate::codec::{put_ended, put_rule};
use crate::history::Histories;
use crate::io::Call;
use crate::layout::{SHARD, checkpoint_file, unfinished};

/// A checkpoint that is being written.
///
/// Before the writer begins, the checkpoint has written the tasks of the memtable to segments, except tasks that changed since the
/// checkpoint's start. The writer writes the list of segments, and then goes through the rules and the ended tasks, a step at a time.
/// Commits go on meanwhile, so some changes in the checkpoint are later than its start (the checkpoint is *fuzzy*). This is correct,
/// because a recovery applies the log from the checkpoint's start on.
#[derive(Debug)]
pub(crate) struct Writer {
    start: Start,
    number: u64,
    name: Arc<str>,
    written_as: Arc<str>,
    seed: u32,
    at: Position,
    offset: u64,
    blocks: u64,
    segments: Vec<Listed>,
    ended: u64,
    sum: u32,
}

#[derive(Debug)]
enum Position {
    /// The list of segments is written next.
    Segments,
    /// The rules behind this one are written next; `None`: all rules.
    Rules(Option<RuleName>),
    /// The ended tasks behind this one are written next; `None`: all ended tasks.
    Ended(Option<(QueueName, Seq)>),
    /// The end is written next.
    End,
    /// The file gets its final name next.
    Name,
    /// Nothing is left to do.
    Done,
}

/// The data that a checkpoint is written from.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) histories: &'a Histories,
    pub(crate) rules: &'a BTreeMap<RuleName, Arc<Rule>>,
    pub(crate) state: EngineState,
    pub(crate) log: LogEnd,
}

/// The last synced frame of the log, and the latest wall-clock instant that the log has, while a checkpoint is written.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LogEnd {
    pub(crate) frame: u64,
    pub(crate) wall: Timestamp,
}

impl Writer {
    pub(crate) fn new(start: Start, number: u64, segments: Vec<Listed>, seeds: &Seeds) -> Self {
        let name = checkpoint_file(number);
        Self {
            start,
            number,
            written_as: unfinished(&name),
            name,
            seed: seeds.of(Use::Checkpoint(number)),
            at: Position::Segments,
            offset: 0,
            blocks: 0,
            segments,
            ended: 0,
            sum: 0,
        }
    }

    /// Returns the name that the file gets once the checkpoint is written.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the name that the file has while the checkpoint is written.
    pub(crate) fn written_as(&self) -> &Arc<str> {
        &self.written_as
    }

    /// Whether [`step`](Self::step) has handed out all calls.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.at, Position::Done)
    }

    /// Returns the next disk calls: a write of one block and a sync, or at the end the change of the file's name. A block of rules or of
    /// ended tasks ends once the write has `step_bytes` bytes. The caller makes the calls in their order, after the calls of earlier steps.
    pub(crate) fn step(&mut self, source: Source<'_>, seeds: &Seeds, step_bytes: usize) -> Vec<Call> {
        if matches!(self.at, Position::Name) {
            self.at = Position::Done;
            let (from, to) = (Arc::clone(&self.written_as), Arc::clone(&self.name));
            let close = Call::Close(Arc::clone(&self.name));
            return vec![Call::Rename { from, to }, Call::SyncDir(SHARD.into()), close];
        }
        let mut calls = Vec::new();
        let mut bytes = Vec::with_capacity(step_bytes + step_bytes / 4);
        if self.offset == 0 {
            calls.push(Call::Create(Arc::clone(&self.written_as)));
            bytes.extend_from_slice(&header_bytes(self.start, self.number, seeds));
        }
        let block_at = bytes.len();
        bytes.resize(block_at + BLOCK_HEAD_BYTES, 0);
        let kind = match self.at {
            Position::Segments => BlockKind::Segments,
            Position::Rules(_) => BlockKind::Rules,
            Position::Ended(_) => BlockKind::Ended,
            Position::End | Position::Name | Position::Done => BlockKind::End,
        };
        self.fill(&mut bytes, source, step_bytes);
        let sum = stamp_block(&mut bytes[block_at..], kind, self.blocks, self.seed);
        self.sum = crc(self.sum, &sum.to_le_bytes());
        self.blocks += 1;
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        calls.push(Call::Write { file: Arc::clone(&self.written_as), offset, bytes });
        calls.push(Call::Sync(Arc::clone(&self.written_as)));
        calls
    }

    fn fill(&mut self, bytes: &mut Vec<u8>, source: Source<'_>, step_bytes: usize) {
        match &self.at {
            Position::Segments => {
                self.segments.iter().for_each(|segment| segment.put(bytes));
                let has_rules = !source.rules.is_empty();
                self.at = if has_rules { Position::Rules(None) } else { Position::Ended(None) };
            }
            Position::Rules(behind) => {
                let start = behind.clone().map_or(Bound::Unbounded, Bound::Excluded);
                for (name, rule) in source.rules.range((start, Bound::Unbounded)) {
                    put_rule(bytes, name, Some(rule));
                    if bytes.len() >= step_bytes {
                        self.at = Position::Rules(Some(name.clone()));
                        return;
                    }
                }
                self.at = Position::Ended(None);
            }
            Position::Ended(behind) => {
                let behind = behind.clone();
                let mut last = behind.clone();
                for ended in source.histories.after(behind.as_ref()) {
                    if bytes.len() >= step_bytes {
                        self.at = Position::Ended(last);
                        return;
                    }
                    put_ended(bytes, ended);
                    self.ended += 1;
                    last = Some((ended.queue.clone(), ended.seq));
                }
                self.at = Position::End;
            }
            Position::End => {
                let end = End {
                    segments: self.segments.len() as u64,
                    ended: self.ended,
                    last_frame: source.log.frame,
                    wall: source.log.wall,
                    state: source.state,
                    sum: self.sum,
                };
                end.put(bytes);
                self.at = Position::Name;
            }
            Position::Name | Position::Done => {}
        }
    }
}
