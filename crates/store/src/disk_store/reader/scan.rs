//! A page of tasks in the order of their due keys. The tasks come from the memtable and from the runs of segments.

use std::sync::Arc;

use tickwheel_engine::{DueKey, Filter, Page, Reply, Seq, Task, Timestamp};

use super::super::merge::{First, Merge, Tools};
use super::Next;
use crate::bounds::Bounds;
use crate::catalog::Catalog;

/// A page that is being read.
#[derive(Debug)]
pub(super) struct Scan {
    /// The filter, if the page has only tasks of one queue; `None`: the page has the tasks of all queues.
    filter: Option<Filter>,
    end: DueKey,
    max: usize,
    /// How many records may still be looked at.
    looks: usize,
    /// How many records the page has passed, whether they are in the page or not.
    passed: usize,
    /// The least number of records that the page passes before it ends because `looks` is 0.
    passes_min: usize,
    /// The page ends when its payloads have this many bytes.
    bytes_max: usize,
    page: Page,
    /// Bytes of the payloads in the page so far.
    bytes: usize,
    cursors: Cursors,
}

/// The merge of a page. When the page has ended, the next page can go on with this merge.
#[derive(Debug)]
pub(super) struct Cursors {
    /// The layout of the segments when the merge began, see `Segments::layout`. With another layout, the merge cannot be used any more.
    layout: u64,
    merge: Merge,
}

impl Cursors {
    fn new(merge: Merge, catalog: &Catalog) -> Self {
        Self { layout: catalog.segments.layout(), merge }
    }
}

impl Scan {
    /// Begins a page of the tasks after `after`, due at or before `until`. `before` may have the cursors of the page before; they are used
    /// if they fit.
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

    /// Begins a page of the tasks after `after` that pass `filter`. All of them are in one queue.
    pub(super) fn filter(
        filter: Filter,
        after: DueKey,
        max: usize,
        catalog: &Catalog,
        bounds: &Bounds,
    ) -> Self {
        // No task has put_seq 0, so this due key comes before all tasks that are due at `due_from`.
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

    /// Returns the cursors for the next page; `None` for a page with a filter, whose cursors are not used again.
    pub(super) fn into_cursors(self) -> Option<Cursors> {
        self.filter.is_none().then_some(self.cursors)
    }

    /// Takes the bytes of the reads that the scan asked for. Returns the next reads, or the page.
    pub(super) fn advance(&mut self, reads: Vec<Vec<u8>>, tools: &mut Tools<'_>) -> Result<Next, String> {
        let merge = &mut self.cursors.merge;
        self.looks = self.looks.saturating_sub(merge.take(reads, tools)?);
        let catalog = tools.catalog;
        let mut memtable = catalog.memtable.behind(merge.at()).peekable();
        loop {
            while memtable.next_if(|(place, _)| *place <= merge.at()).is_some() {}
            let memory = memtable.peek().copied().filter(|(place, _)| *place <= self.end);
            // Asks for one task more than the page takes, to learn whether more tasks follow. If many tasks of other queues were passed,
            // asks for as many records as were passed without a match, so that the reads become larger.
            let found = self.page.tasks.len();
            let wanted = self.max.saturating_add(1).saturating_sub(found).max(self.passed - found);
            let rival = memory.map(|(place, _)| place);
            // `task` is `None` if the next task is in another queue.
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
            // If the page is full, a further task is not added. The further task only proves that there is a next page.
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
