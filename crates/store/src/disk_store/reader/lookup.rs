//! The look-up of tasks by id or by key.

use std::sync::Arc;

use tickwheel_engine::{Found, Reply, Task, Wanted};

use super::super::setup::Setup;
use super::Next;
use crate::catalog::{Catalog, Sought};
use crate::checksum::Use;
use crate::codec::Names;
use crate::error::damage;
use crate::index::Spot;
use crate::io::Call;
use crate::segment::{BadRecord, read_record};

/// Tasks that are looked up. The answer for a task comes from memory, or from records that have to be read first.
#[derive(Debug)]
pub(super) struct Lookup {
    wants: Vec<Want>,
    /// For each read under way: the index of the wanted task, and the index of the probe in its `probes`.
    asked: Vec<(usize, usize)>,
}

#[derive(Debug)]
struct Want {
    wanted: Wanted,
    /// The answer if none of the probes has the task.
    otherwise: Found,
    probes: Vec<Probe>,
}

/// A record that has to be read, because it may belong to the wanted task.
#[derive(Debug)]
struct Probe {
    file: Arc<str>,
    seed: u32,
    /// The id of the task that the record has to belong to.
    id: u64,
    offset: u64,
    /// The length of the segment (bytes). No record reaches beyond it.
    end: u64,
    /// How many bytes are to be read from `offset` on.
    wants_bytes: usize,
    /// The bytes that were read and not decoded yet.
    bytes: Option<Vec<u8>>,
    read: Option<Arc<Task>>,
}

impl Lookup {
    pub(super) fn new(wanted: Vec<Wanted>, catalog: &Catalog, setup: &Setup) -> Self {
        let wants = wanted.into_iter().map(|wanted| Want::new(wanted, catalog, setup)).collect();
        Self { wants, asked: Vec::new() }
    }

    /// Takes the bytes of the reads that the look-up asked for. Returns the next reads, or the answer.
    pub(super) fn advance(&mut self, reads: Vec<Vec<u8>>, names: &mut Names) -> Result<Next, String> {
        for ((want, probe), bytes) in self.asked.drain(..).zip(reads) {
            self.wants[want].probes[probe].bytes = Some(bytes);
        }
        let mut calls = Vec::new();
        for (at, want) in self.wants.iter_mut().enumerate() {
            for (nth, probe) in want.probes.iter_mut().enumerate() {
                probe.advance(names)?;
                if probe.read.is_none() {
                    let file = Arc::clone(&probe.file);
                    calls.push(Call::Read { file, offset: probe.offset, bytes: probe.wants_bytes });
                    self.asked.push((at, nth));
                }
            }
        }
        if calls.is_empty() {
            return Ok(Next::Reply(Reply::Found(self.wants.drain(..).map(Want::found).collect())));
        }
        Ok(Next::Calls(calls))
    }
}

impl Want {
    fn new(wanted: Wanted, catalog: &Catalog, setup: &Setup) -> Self {
        let (spots, otherwise) = match catalog.seek(&wanted) {
            Sought::Known(found) => (Vec::new(), found),
            Sought::Far(spots, otherwise) => (spots, otherwise),
        };
        let probe = |(id, spot): (u64, Spot)| {
            let segment = catalog.segments.get(spot.segment);
            Probe {
                file: Arc::clone(&segment.name),
                seed: setup.seeds.of(Use::Segment(segment.generation)),
                id,
                offset: spot.offset,
                end: segment.len,
                wants_bytes: setup.options.bounds.record_read_bytes,
                bytes: None,
                read: None,
            }
        };
        Self { wanted, otherwise, probes: spots.into_iter().map(probe).collect() }
    }

    fn found(self) -> Found {
        // A record may have been found by a hash of the key, and other keys may have the same hash. So the key is compared.
        let is_it = |task: &Arc<Task>| match &self.wanted {
            Wanted::Id(id) => task.id == *id,
            Wanted::Key(queue, key) => task.queue == *queue && task.key == *key && task.is_keyed(),
        };
        let mut read = self.probes.into_iter().filter_map(|probe| probe.read);
        read.find(is_it).map_or(self.otherwise, Found::Live)
    }
}

impl Probe {
    /// Decodes the bytes that were read. If the record is longer than these bytes, sets how many bytes the next read has to have.
    fn advance(&mut self, names: &mut Names) -> Result<(), String> {
        let Some(bytes) = self.bytes.take() else { return Ok(()) };
        let what = match read_record(&bytes, self.offset, self.seed, names) {
            Ok((task, _)) if task.id == self.id => {
                self.read = Some(Arc::new(task));
                return Ok(());
            }
            Ok((task, _)) => format!("task {} stands where task {} should", task.id, self.id),
            Err(BadRecord::Short(length))
                if bytes.len() == self.wants_bytes && self.offset.saturating_add(length) <= self.end =>
            {
                self.wants_bytes =
                    usize::try_from(length).expect("a file that was written by memory's addresses");
                return Ok(());
            }
            Err(BadRecord::Short(_)) => "the file ends in a record".to_owned(),
            Err(BadRecord::Damaged(what)) => what,
        };
        Err(damage(&self.file, self.offset, &what))
    }
}
