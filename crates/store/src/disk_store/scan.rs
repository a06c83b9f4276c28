//! A page of tasks in the order of their places, merged from memory and from the runs of segments.

use std::collections::VecDeque;
use std::sync::Arc;

use tickwheel_engine::{Filter, Page, Place, Reply, Seq, Task, Timestamp};

use super::look::damage;
use super::reading::Next;
use crate::catalog::Catalog;
use crate::checksum::{Seeds, Use};
use crate::codec::Names;
use crate::index::Spot;
use crate::io::Call;
use crate::segment::{BadRecord, read_record};

/// A filter looks at so many records at most before it answers, though the page may be empty: a quarter of a megabyte of
/// them and more, some milliseconds.
const LOOKS_MAX: usize = 4_096;

/// So many runs are read at once when none of them has anything yet.
const READ_AHEAD: usize = 8;

/// A page that is being read.
#[derive(Debug)]
pub(super) struct Scan {
    /// Only tasks of its queue; `None`: all.
    filter: Option<Filter>,
    end: Place,
    max: usize,
    /// Records that may still be looked at.
    looks: usize,
    page: Page,
    cursors: Cursors,
    /// Which cursors the reads under way are for.
    asked: Vec<usize>,
}

/// Where a merge has come to.
#[derive(Debug)]
pub(super) struct Cursors {
    /// The last place that was passed.
    at: Place,
    /// How far it may go: runs that begin later have no cursor.
    end: Place,
    /// The catalog's number of changes to its runs: the cursors know no others.
    layout: u64,
    cursors: Vec<Cursor>,
}

/// A run, from some block on.
#[derive(Debug)]
struct Cursor {
    segment: u32,
    run: usize,
    file: Arc<str>,
    generation: u64,
    next_block: usize,
    /// The next block, read.
    block: Option<Vec<u8>>,
    /// Read and not passed yet.
    ahead: VecDeque<(Spot, Arc<Task>)>,
}

/// Who is first in line.
enum First {
    Memory(Arc<Task>),
    Run(usize),
    /// These have to be read before it can be told.
    Unread(Vec<usize>),
    Nobody,
}

impl Scan {
    /// Tasks behind `after`, due at or before `until`; `before` may have the cursors of the page before.
    pub(super) fn due(
        after: Place,
        until: Timestamp,
        max: usize,
        catalog: &Catalog,
        layout: u64,
        before: Option<Cursors>,
    ) -> Self {
        let end = Place { due_at: until, put_seq: Seq(u64::MAX) };
        let goes_on =
            before.filter(|before| before.at == after && before.layout == layout && before.end >= end);
        let cursors = goes_on.unwrap_or_else(|| Cursors::behind(after, end, catalog, layout));
        Self {
            filter: None,
            end,
            max: max.max(1),
            looks: usize::MAX,
            page: Page::default(),
            cursors,
            asked: Vec::new(),
        }
    }

    /// The same of one queue.
    pub(super) fn filter(filter: Filter, after: Place, max: usize, catalog: &Catalog, layout: u64) -> Self {
        // No task has put_seq 0, so this stands before all that are due at `due_from`.
        let after = after.max(Place { due_at: filter.due_from, put_seq: Seq::ZERO });
        let end = Place { due_at: filter.due_to, put_seq: Seq(u64::MAX) };
        let cursors = Cursors::behind(after, end, catalog, layout);
        let (max, page) = (max.max(1), Page::default());
        Self { filter: Some(filter), end, max, looks: LOOKS_MAX.max(max), page, cursors, asked: Vec::new() }
    }

    /// The cursors, for the next page, if there may be one.
    pub(super) fn into_cursors(self) -> Option<Cursors> {
        self.filter.is_none().then_some(self.cursors)
    }

    /// The reads that were asked for brought this.
    pub(super) fn take(&mut self, reads: Vec<Vec<u8>>) {
        for (at, bytes) in self.asked.iter().zip(reads) {
            self.cursors.cursors[*at].block = Some(bytes);
        }
    }

    pub(super) fn advance(&mut self, catalog: &Catalog, seeds: &Seeds, names: &mut Names) -> Next {
        for at in std::mem::take(&mut self.asked) {
            if let Err(why) = self.cursors.decode(at, catalog, seeds, names) {
                return Next::Damaged(why);
            }
        }
        loop {
            let task = match self.cursors.first(self.end, catalog) {
                First::Nobody => return self.reply(None),
                First::Unread(unread) => {
                    let calls = unread.iter().map(|at| self.cursors.read(*at, catalog)).collect();
                    self.asked = unread;
                    return Next::Calls(calls);
                }
                First::Memory(task) => task,
                First::Run(at) => match self.cursors.live_head(at, catalog) {
                    Some(task) => task,
                    // It ended, or moved, since it was read.
                    None => continue,
                },
            };
            let wanted = self.filter.as_ref().is_none_or(|filter| filter.queue == task.queue);
            // The one behind the last is only there to say that there is more.
            if wanted && self.page.tasks.len() == self.max || self.looks == 0 {
                let at = self.cursors.at;
                return self.reply(Some(at));
            }
            self.looks -= 1;
            self.cursors.pass(&task);
            if wanted {
                self.page.tasks.push(task);
            }
        }
    }

    fn reply(&mut self, next: Option<Place>) -> Next {
        let page = Page { next, ..std::mem::take(&mut self.page) };
        Next::Reply(Reply::Page(page))
    }
}

impl Cursors {
    fn behind(after: Place, end: Place, catalog: &Catalog, layout: u64) -> Self {
        let mut cursors = Vec::new();
        let segments = catalog.segments.iter().filter(|(_, segment)| segment.may_have(after, end));
        for (slot, segment) in segments {
            for (index, run) in segment.runs.iter().enumerate() {
                let next_block = run.first_block_behind(after);
                if run.blocks().get(next_block).is_some_and(|block| block.first <= end) {
                    cursors.push(Cursor {
                        segment: slot,
                        run: index,
                        file: Arc::clone(&segment.name),
                        generation: segment.generation,
                        next_block,
                        block: None,
                        ahead: VecDeque::new(),
                    });
                }
            }
        }
        Self { at: after, end, layout, cursors }
    }

    /// Who comes next behind `at`, up to `end`.
    fn first(&mut self, end: Place, catalog: &Catalog) -> First {
        let memory = catalog.fresh.first_behind(self.at).filter(|(place, _)| *place <= end);
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
        let known =
            [best.map(|(place, _)| place), memory.map(|(place, _)| place)].into_iter().flatten().min();
        unread.retain(|(place, _)| known.is_none_or(|known| *place <= known));
        if !unread.is_empty() {
            unread.sort_unstable();
            unread.truncate(READ_AHEAD);
            return First::Unread(unread.into_iter().map(|(_, index)| index).collect());
        }
        match (memory, best) {
            (Some((place, task)), best) if best.is_none_or(|(first, _)| place < first) => {
                First::Memory(Arc::clone(task))
            }
            (_, Some((_, index))) => First::Run(index),
            (_, None) => First::Nobody,
        }
    }

    /// The task that this cursor has first; `None`, and it is passed over, if it is not there any more.
    fn live_head(&mut self, at: usize, catalog: &Catalog) -> Option<Arc<Task>> {
        let ahead = &mut self.cursors[at].ahead;
        let (spot, task) = ahead.front()?;
        if catalog.is_live(task.id, *spot) {
            return Some(Arc::clone(task));
        }
        ahead.pop_front();
        None
    }

    fn pass(&mut self, task: &Task) {
        self.at = Place::of(task);
    }

    fn read(&self, at: usize, catalog: &Catalog) -> Call {
        let cursor = &self.cursors[at];
        let run = &catalog.segments.get(cursor.segment).runs[cursor.run];
        let (offset, bytes) = run.block_range(cursor.next_block);
        Call::Read { file: Arc::clone(&cursor.file), offset, bytes }
    }

    /// Makes records of a block that was read.
    fn decode(
        &mut self,
        at: usize,
        catalog: &Catalog,
        seeds: &Seeds,
        names: &mut Names,
    ) -> Result<(), String> {
        let after = self.at;
        let cursor = &mut self.cursors[at];
        let bytes = cursor.block.take().unwrap_or_default();
        let run = &catalog.segments.get(cursor.segment).runs[cursor.run];
        let (start, length) = run.block_range(cursor.next_block);
        if bytes.len() < length {
            return Err(damage(&cursor.file, start + bytes.len() as u64, "the file ends in a block"));
        }
        let seed = seeds.of(Use::Segment(cursor.generation));
        let mut from = 0;
        while from < length {
            let offset = start + from as u64;
            let (task, bytes) =
                read_record(&bytes[from..], offset, seed, names).map_err(|bad| match bad {
                    BadRecord::Short(_) => damage(&cursor.file, offset, "a record reaches beyond its block"),
                    BadRecord::Damaged(what) => damage(&cursor.file, offset, &what),
                })?;
            let spot = Spot { segment: cursor.segment, offset };
            if Place::of(&task) > after && catalog.is_live(task.id, spot) {
                cursor.ahead.push_back((spot, Arc::new(task)));
            }
            from += bytes;
        }
        cursor.next_block += 1;
        Ok(())
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
}
