//! Runs of segments, merged: the live records of all of them in the order of their places.

use std::collections::VecDeque;
use std::sync::Arc;

use tickwheel_engine::{Place, Seq, Task, Timestamp};

use super::look::damage;
use crate::catalog::{Catalog, Segment};
use crate::checksum::{Seeds, Use};
use crate::codec::Names;
use crate::index::Spot;
use crate::io::Call;
use crate::segment::{BadRecord, read_record};

/// So many runs are read at once when none of them has anything yet.
const READ_AHEAD: usize = 8;

/// Where a merge has come to. It reads nothing itself: it says what is to be read, and is given it.
#[derive(Debug)]
pub(super) struct Merge {
    /// The last place that was passed.
    at: Place,
    /// How far it may go: runs that begin later have no cursor.
    end: Place,
    cursors: Vec<Cursor>,
    /// Which cursors the reads under way are for.
    asked: Vec<usize>,
}

/// A run, from some block on.
#[derive(Debug)]
struct Cursor {
    segment: u32,
    run: usize,
    file: Arc<str>,
    generation: u64,
    next_block: usize,
    /// Read and not passed yet.
    ahead: VecDeque<(Spot, Arc<Task>)>,
}

/// Who is first in line.
pub(super) enum First {
    /// This task.
    Task(Arc<Task>),
    /// These have to be read before it can be told.
    Reads(Vec<Call>),
    Nobody,
}

impl Merge {
    /// The runs of all segments, behind `after` and up to `end`.
    pub(super) fn of_all(after: Place, end: Place, catalog: &Catalog) -> Self {
        let mut merge = Self { at: after, end, cursors: Vec::new(), asked: Vec::new() };
        for (slot, segment) in catalog.segments.iter().filter(|(_, segment)| segment.may_have(after, end)) {
            merge.add(slot, segment);
        }
        merge
    }

    /// The runs of one segment.
    pub(super) fn of_one(slot: u32, catalog: &Catalog) -> Self {
        let (at, end) = (Place::START, Place { due_at: Timestamp::MAX, put_seq: Seq(u64::MAX) });
        let mut merge = Self { at, end, cursors: Vec::new(), asked: Vec::new() };
        merge.add(slot, catalog.segments.get(slot));
        merge
    }

    fn add(&mut self, slot: u32, segment: &Segment) {
        for (index, run) in segment.runs.iter().enumerate() {
            let next_block = run.first_block_behind(self.at);
            if run.blocks().get(next_block).is_some_and(|block| block.first <= self.end) {
                self.cursors.push(Cursor {
                    segment: slot,
                    run: index,
                    file: Arc::clone(&segment.name),
                    generation: segment.generation,
                    next_block,
                    ahead: VecDeque::new(),
                });
            }
        }
    }

    /// The last place that was passed.
    pub(super) fn at(&self) -> Place {
        self.at
    }

    /// How far it may go.
    pub(super) fn end(&self) -> Place {
        self.end
    }

    /// The reads that were asked for brought this.
    ///
    /// # Errors
    /// What is wrong with it: file, offset, and what.
    pub(super) fn take(
        &mut self,
        reads: Vec<Vec<u8>>,
        catalog: &Catalog,
        seeds: &Seeds,
        names: &mut Names,
    ) -> Result<(), String> {
        for (at, bytes) in std::mem::take(&mut self.asked).into_iter().zip(reads) {
            self.cursors[at].decode(&bytes, self.at, catalog, seeds, names)?;
        }
        Ok(())
    }

    /// Who comes next, up to `end`, if that is before `rival`; a rival is what somebody else has at this place.
    pub(super) fn first(&mut self, end: Place, rival: Option<Place>, catalog: &Catalog) -> First {
        loop {
            let mut best: Option<(Place, usize)> = None;
            let mut unread: Vec<(Place, usize)> = Vec::new();
            for (index, cursor) in self.cursors.iter_mut().enumerate() {
                match cursor.head(self.at, catalog) {
                    Head::Read(place) if place <= end && best.is_none_or(|(first, _)| place < first) => {
                        best = Some((place, index));
                    }
                    Head::Unread(place) if place <= end => unread.push((place, index)),
                    Head::Read(_) | Head::Unread(_) | Head::Nothing => {}
                }
            }
            let known = [best.map(|(place, _)| place), rival].into_iter().flatten().min();
            unread.retain(|(place, _)| known.is_none_or(|known| *place <= known));
            if !unread.is_empty() {
                unread.sort_unstable();
                unread.truncate(READ_AHEAD);
                self.asked = unread.into_iter().map(|(_, index)| index).collect();
                return First::Reads(self.asked.iter().map(|at| self.cursors[*at].read(catalog)).collect());
            }
            let Some((place, index)) = best else { return First::Nobody };
            if rival.is_some_and(|rival| rival < place) {
                return First::Nobody;
            }
            // `None`: it ended, or moved, since it was read.
            if let Some(task) = self.cursors[index].live_head(catalog) {
                return First::Task(task);
            }
        }
    }

    /// Goes on behind a task.
    pub(super) fn pass(&mut self, task: &Task) {
        self.at = Place::of(task);
    }
}

/// What is known of a cursor's next record.
enum Head {
    Read(Place),
    /// It is not before this place.
    Unread(Place),
    Nothing,
}

impl Cursor {
    fn head(&mut self, after: Place, catalog: &Catalog) -> Head {
        while let Some((_, task)) = self.ahead.front() {
            if Place::of(task) > after {
                return Head::Read(Place::of(task));
            }
            self.ahead.pop_front();
        }
        // Blocks without a live record are passed over unread: what was deleted costs nothing.
        let blocks = catalog.segments.get(self.segment).runs[self.run].blocks();
        while blocks.get(self.next_block).is_some_and(|block| block.records == 0) {
            self.next_block += 1;
        }
        blocks.get(self.next_block).map_or(Head::Nothing, |block| Head::Unread(block.first))
    }

    /// The first task that was read; `None`, and it is passed over, if it is not there any more.
    fn live_head(&mut self, catalog: &Catalog) -> Option<Arc<Task>> {
        let (spot, task) = self.ahead.front()?;
        if catalog.is_live(task.id, *spot) {
            return Some(Arc::clone(task));
        }
        self.ahead.pop_front();
        None
    }

    fn read(&self, catalog: &Catalog) -> Call {
        let run = &catalog.segments.get(self.segment).runs[self.run];
        let (offset, bytes) = run.block_range(self.next_block);
        Call::Read { file: Arc::clone(&self.file), offset, bytes }
    }

    /// Makes records of a block that was read.
    fn decode(
        &mut self,
        bytes: &[u8],
        after: Place,
        catalog: &Catalog,
        seeds: &Seeds,
        names: &mut Names,
    ) -> Result<(), String> {
        let run = &catalog.segments.get(self.segment).runs[self.run];
        let (start, length) = run.block_range(self.next_block);
        if bytes.len() < length {
            return Err(damage(&self.file, start + bytes.len() as u64, "the file ends in a block"));
        }
        let seed = seeds.of(Use::Segment(self.generation));
        let mut from = 0;
        while from < length {
            let offset = start + from as u64;
            let (task, bytes) =
                read_record(&bytes[from..], offset, seed, names).map_err(|bad| match bad {
                    BadRecord::Short(_) => damage(&self.file, offset, "a record reaches beyond its block"),
                    BadRecord::Damaged(what) => damage(&self.file, offset, &what),
                })?;
            let spot = Spot { segment: self.segment, offset };
            if Place::of(&task) > after && catalog.is_live(task.id, spot) {
                self.ahead.push_back((spot, Arc::new(task)));
            }
            from += bytes;
        }
        self.next_block += 1;
        Ok(())
    }
}
