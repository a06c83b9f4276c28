//! A page of tasks in the order of their places, merged from memory and from the runs of segments.

use std::sync::Arc;

use tickwheel_engine::{DueKey, Filter, Page, Reply, Seq, Task, Timestamp};

use super::super::merge::{First, Merge, Tools};
use super::next::Next;
use crate::bounds::Bounds;
use crate::catalog::Catalog;

/// A page that is being read.
#[derive(Debug)]
pub(super) struct Scan {
    /// The page has only tasks of this filter's queue; `None`: of all queues.
    filter: Option<Filter>,
    end: DueKey,
    max: usize,
    /// Records that may still be looked at.
    looks: usize,
    /// Records that were looked at.
    passed: usize,
    /// Records that are passed in any case.
    passes_min: usize,
    /// Bytes of payloads at which the page ends.
    bytes_max: usize,
    page: Page,
    /// Bytes of the payloads in the page.
    bytes: usize,
    cursors: Cursors,
}

/// Where a page ended, for the next one to go on from there.
#[derive(Debug)]
pub(super) struct Cursors {
    /// The layout of the segments that the merge knows, see `Segments::layout`.
    layout: u64,
    merge: Merge,
}

impl Cursors {
    fn new(merge: Merge, catalog: &Catalog) -> Self {
        Self { layout: catalog.segments.layout(), merge }
    }
}

impl Scan {
    /// Tasks behind `after`, due at or before `until`; `before` may have the cursors of the page before.
    pub(super) fn due(
        after: DueKey,
        until: Timestamp,
        max: usize,
        catalog: &Catalog,
        before: Option<Cursors>,
        bounds: &Bounds,
    ) -> Self {
        let end = DueKey { due_at: until, put_seq: Seq(u64::MAX) };
        let goes_on = before.filter(|before| {
            before.layout == catalog.segments.layout()
                && before.merge.at() == after
                && before.merge.end() >= end
        });
        let cursors = match goes_on {
            Some(before) => {
                before.merge.touch(catalog);
                before
            }
            None => Cursors::new(Merge::of_all(after, end, catalog, bounds), catalog),
        };
        Self::new(None, end, max, usize::MAX, cursors, bounds)
    }

    /// The tasks of one queue that pass `filter`, behind `after`.
    pub(super) fn filter(
        filter: Filter,
        after: DueKey,
        max: usize,
        catalog: &Catalog,
        bounds: &Bounds,
    ) -> Self {
        // No task has put_seq 0, so this place stands before all tasks that are due at `due_from`.
        let after = after.max(DueKey { due_at: filter.due_from, put_seq: Seq::ZERO });
        let end = DueKey { due_at: filter.due_to, put_seq: Seq(u64::MAX) };
        let merge = Merge::of_filter(after, end, catalog, &filter, bounds);
        let looks = bounds.page_looks.max(max);
        Self::new(Some(filter), end, max, looks, Cursors::new(merge, catalog), bounds)
    }

    fn new(
        filter: Option<Filter>,
        end: DueKey,
        max: usize,
        looks: usize,
        cursors: Cursors,
        bounds: &Bounds,
    ) -> Self {
        Self {
            filter,
            end,
            max: max.max(1),
            looks,
            passed: 0,
            passes_min: bounds.page_passes,
            bytes_max: bounds.page_bytes,
            page: Page::default(),
            bytes: 0,
            cursors,
        }
    }

    /// The cursors, for the next page, if there may be one.
    pub(super) fn into_cursors(self) -> Option<Cursors> {
        self.filter.is_none().then_some(self.cursors)
    }

    /// Goes on with the bytes of the reads that the scan asked for.
    pub(super) fn advance(&mut self, reads: Vec<Vec<u8>>, tools: &mut Tools<'_>) -> Result<Next, String> {
        let merge = &mut self.cursors.merge;
        self.looks = self.looks.saturating_sub(merge.take(reads, tools)?);
        let catalog = tools.catalog;
        let mut memtable = catalog.memtable.behind(merge.at()).peekable();
        loop {
            while memtable.next_if(|(place, _)| *place <= merge.at()).is_some() {}
            let memory = memtable.peek().copied().filter(|(place, _)| *place <= self.end);
            // Asks for one task more than the page takes, to say whether there is more; but for at least as many as were passed without a
            // find.
            let found = self.page.tasks.len();
            let wanted = self.max.saturating_add(1).saturating_sub(found).max(self.passed - found);
            let rival = memory.map(|(place, _)| place);
            // `None` is a task of another queue.
            let (place, task) = match (merge.first(self.end, rival, wanted, catalog), memory) {
                (First::Reads(calls), _) => return Ok(Next::Calls(calls)),
                (First::Task(task), _) => (DueKey::of(&task), Some(task)),
                (First::Other(place), _) => (place, None),
                (First::Nobody, Some((place, task))) => (place, Some(Arc::clone(task))),
                (First::Nobody, None) => return Ok(self.reply(None)),
            };
            let passes = |task: &Arc<Task>| {
                let filter = self.filter.as_ref();
                filter.is_none_or(|filter| filter.queue == task.queue && filter.dead == task.dead().is_some())
            };
            let task = task.filter(passes);
            // The task behind the last one of the page only says that there is more.
            let full = self.page.tasks.len() == self.max || self.bytes >= self.bytes_max;
            if (task.is_some() && full) || (self.looks == 0 && self.passed >= self.passes_min) {
                let at = merge.at();
                return Ok(self.reply(Some(at)));
            }
            self.looks = self.looks.saturating_sub(1);
            self.passed += 1;
            merge.pass(place);
            if let Some(task) = task {
                self.bytes += task.body.payload_bytes();
                self.page.tasks.push(task);
            }
        }
    }

    fn reply(&mut self, next: Option<DueKey>) -> Next {
        let page = Page { next, ..std::mem::take(&mut self.page) };
        Next::Reply(Reply::Page(page))
    }
}
