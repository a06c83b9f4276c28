//! Writes a checkpoint in bounded steps, while commits go on.

use std::sync::Arc;

use tickwheel_engine::{QueueName, Seq, Timestamp};

use super::block::{BLOCK_HEAD_BYTES, BlockKind, End, Start, header_bytes, stamp_block};
use crate::checksum::{Seeds, Use, crc};
use crate::codec::{put_ended, put_stored};
use crate::io::Call;
use crate::layout::{SHARD, checkpoint_file, unfinished};
use crate::table::Table;

/// A checkpoint that is being written.
///
/// It walks the table a step at a time: the tasks by id, then what is remembered of ended ones. Commits go on meanwhile, so it
/// has some records of a later time than others (it is *fuzzy*). That is well, because the log from its start on is read on top
/// of it, and records are compared by their seq.
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
    tasks: u64,
    ended: u64,
    sum: u32,
}

#[derive(Debug)]
enum Position {
    /// Next come the tasks from this id on.
    Tasks(u64),
    /// Next come the ended tasks behind this one.
    Ended(Option<(QueueName, Seq)>),
    /// Next comes the end.
    End,
    /// Next it gets its name.
    Name,
    /// Nothing comes.
    Done,
}

/// What the log has come to while a checkpoint is written.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LogEnd {
    pub(crate) frame: u64,
    pub(crate) wall: Timestamp,
}

impl Writer {
    pub(crate) fn new(start: Start, number: u64, seeds: &Seeds) -> Self {
        let name = checkpoint_file(number);
        Self {
            start,
            number,
            written_as: unfinished(&name),
            name,
            seed: seeds.of(Use::Checkpoint(number)),
            at: Position::Tasks(0),
            offset: 0,
            blocks: 0,
            tasks: 0,
            ended: 0,
            sum: 0,
        }
    }

    /// Where it stands in the log.
    pub(crate) fn start(&self) -> Start {
        self.start
    }

    /// Its name once it is done.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its name until then.
    pub(crate) fn written_as(&self) -> &Arc<str> {
        &self.written_as
    }

    /// Whether all calls were handed out.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.at, Position::Done)
    }

    /// The next calls: about `step_bytes` bytes, synced; at the end the name. Each is to be made after those before it.
    pub(crate) fn step(&mut self, table: &Table, log: LogEnd, seeds: &Seeds, step_bytes: usize) -> Vec<Call> {
        if matches!(self.at, Position::Name) {
            self.at = Position::Done;
            let (from, to) = (Arc::clone(&self.written_as), Arc::clone(&self.name));
            let mut calls = vec![Call::Rename { from, to }];
            if !crate::planted::is("no-dir-sync") {
                calls.push(Call::SyncDir(SHARD.into()));
            }
            calls.push(Call::Close(Arc::clone(&self.name)));
            return calls;
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
            Position::End => BlockKind::End,
            _ => BlockKind::Records,
        };
        self.fill(&mut bytes, table, log, step_bytes);
        let sum = stamp_block(&mut bytes[block_at..], kind, self.blocks, self.seed);
        self.sum = crc(self.sum, &sum.to_le_bytes());
        self.blocks += 1;
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        calls.push(Call::Write { file: Arc::clone(&self.written_as), offset, bytes });
        calls.push(Call::Sync(Arc::clone(&self.written_as)));
        calls
    }

    fn fill(&mut self, bytes: &mut Vec<u8>, table: &Table, log: LogEnd, step_bytes: usize) {
        if let Position::Tasks(from) = self.at {
            self.at = Position::Ended(None);
            for task in table.tasks_from(from) {
                if bytes.len() >= step_bytes {
                    self.at = Position::Tasks(task.id);
                    return;
                }
                put_stored(bytes, task, true);
                self.tasks += 1;
            }
        }
        if let Position::Ended(behind) = &self.at {
            let behind = behind.clone();
            let mut last = behind.clone();
            for ended in table.ended_after(behind.as_ref()) {
                if bytes.len() >= step_bytes {
                    self.at = Position::Ended(last);
                    return;
                }
                put_ended(bytes, ended);
                self.ended += 1;
                last = Some((ended.queue.clone(), ended.seq));
            }
            self.at = Position::End;
            return;
        }
        if let Position::End = self.at {
            let end = End {
                tasks: self.tasks,
                ended: self.ended,
                last_frame: log.frame,
                wall: log.wall,
                counters: table.counters(),
                sum: self.sum,
            };
            end.put(bytes);
            self.at = Position::Name;
        }
    }
}
