//! Writes a run.

use std::collections::BTreeMap;

use tickwheel_engine::{DueKey, QueueName, Task};

use super::footer::{Block, Entry, Footer};
use super::record::put_record;
use super::run::Run;
use super::section::{SectionKind, Tail};
use crate::checksum::crc;
use crate::index::KeyHash;

/// A run that is being written. Tasks are pushed in the order of their due keys. In between, the caller takes out the bytes that are ready.
#[derive(Debug)]
pub(crate) struct RunWriter {
    seed: u32,
    start: u64,
    /// The offset in the file where `bytes` will be written.
    bytes_at: u64,
    bytes: Vec<u8>,
    footer: Footer,
    queues: BTreeMap<QueueName, u32>,
    block_bytes: u64,
}

/// A run that was written whole.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) run: Run,
    pub(crate) entries: Vec<Entry>,
    /// The offset in the file where the run's section ends.
    pub(crate) end: u64,
}

impl RunWriter {
    /// Begins a run at the offset `start` of the file. A block takes no more records once it has `block_bytes` bytes.
    pub(crate) fn new(seed: u32, start: u64, block_bytes: u64) -> Self {
        Self {
            seed,
            start,
            bytes_at: start,
            bytes: Vec::new(),
            footer: Footer::default(),
            queues: BTreeMap::new(),
            block_bytes,
        }
    }

    /// Returns how many bytes the run has so far, without its footer.
    pub(crate) fn len(&self) -> u64 {
        self.bytes_at + self.bytes.len() as u64 - self.start
    }

    /// Returns how many bytes wait to be taken out.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn push(&mut self, task: &Task, key: KeyHash) {
        let place = DueKey::of(task);
        let at = u32::try_from(self.len()).expect("a run is closed long before 4 GiB");
        debug_assert!(
            self.footer.last.is_none_or(|last| last < place),
            "{place:?} comes after {:?}",
            self.footer.last
        );
        put_record(&mut self.bytes, task, self.start + u64::from(at), self.seed);
        match self.footer.blocks.last_mut() {
            Some(block) if u64::from(at - block.at) < self.block_bytes => block.records += 1,
            _ => self.footer.blocks.push(Block { at, records: 1, first: place }),
        }
        let queue = self.queue(&task.queue);
        self.footer.entries.push(Entry {
            id: task.id,
            key,
            at,
            queue,
            leased: task.lease.is_some(),
            dead: task.dead().is_some(),
        });
        self.footer.last = Some(place);
    }

    fn queue(&mut self, name: &QueueName) -> u32 {
        if let Some(known) = self.queues.get(name) {
            return *known;
        }
        let number = u32::try_from(self.footer.queues.len()).expect("a run has fewer queues than bytes");
        self.queues.insert(name.clone(), number);
        self.footer.queues.push(name.clone());
        number
    }

    /// Takes out the bytes to write next. Returns the offset in the file at which to write them, and the bytes.
    pub(crate) fn take(&mut self) -> (u64, Vec<u8>) {
        let at = self.bytes_at;
        self.bytes_at += self.bytes.len() as u64;
        (at, core::mem::take(&mut self.bytes))
    }

    /// Ends the run with its footer and its tail. Returns the run and the bytes that still have to be written, with their offset in the
    /// file.
    pub(crate) fn finish(mut self) -> (u64, Vec<u8>, Written) {
        let end = self.start + self.len();
        let footer_at = self.bytes.len();
        self.footer.put(&mut self.bytes);
        let footer = &self.bytes[footer_at..];
        let tail_at = end + footer.len() as u64;
        let tail = Tail {
            kind: SectionKind::Run,
            start: self.start,
            footer_at: end,
            footer_sum: crc(self.seed, footer),
            count: self.footer.entries.len() as u64,
        };
        tail.put(&mut self.bytes, tail_at, self.seed);
        let (at, bytes) = self.take();
        let Footer { blocks, entries, last, .. } = self.footer;
        let last = last.expect("a run is begun with its first task");
        let run = Run::new(self.start, end, last, blocks);
        (at, bytes, Written { run, entries, end: self.bytes_at })
    }
}
