//! The reader of segments: does look-ups, pages and histograms, several at a time, while commits go on.

mod histogram;
mod lookup;
mod scan;

use std::collections::VecDeque;

use tickwheel_engine::{AcquiredCursor, AcquiredPage, Found, Reply, Request, RequestId, Timestamp, Wanted};

use self::histogram::Histogram;
use self::lookup::Lookup;
use self::scan::{Cursors, Scan};
use super::jobs::Jobs;
use super::merge::Tools;
use super::setup::Setup;
use crate::catalog::Catalog;
use crate::codec::Names;
use crate::io::{Call, JobId, Lane};

/// How a read goes on. In a `Result` with this type, the error is the text of a damage: the file, the offset, and what is wrong.
#[derive(Debug)]
pub(super) enum Next {
    /// The calls that have to be made. All of them are reads.
    Calls(Vec<Call>),
    /// The read is over.
    Reply(Reply),
}

/// Answers the requests that read. The reader does not change the catalog or a file.
#[derive(Debug)]
pub(super) struct Reader {
    /// The reads under way, oldest first.
    under_way: VecDeque<Read>,
    /// The number of the read that was begun last.
    begun: u64,
    names: Names,
    /// Pages and histograms that wait until the reads of other pages are over, so that the catalog can take over a part of a checkpoint.
    parked: VecDeque<(RequestId, Request)>,
    /// The merge of the last page, unless that page had a filter. The next page can go on with the merge, without reading a block twice.
    cursors: Option<Cursors>,
}

/// The parts of the store that a read uses.
pub(super) struct View<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) setup: &'a Setup,
    pub(super) jobs: &'a mut Jobs,
    /// Whether the catalog is taking a checkpoint over, so that a record may be in two places.
    pub(super) settling: bool,
    /// Whether a new page waits until the pages under way are over. The catalog waits for those pages before it takes over a part of a
    /// checkpoint. After a failure of the store, the catalog takes nothing over, so no page waits.
    pub(super) parks: bool,
}

/// A read that is over.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) request: RequestId,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Reply(Reply),
    /// The first page for a new owner, and the latest wall clock that the store knew before this owner.
    FirstPage(AcquiredPage, Timestamp),
    /// A record that was read is damaged, or the disk failed.
    Failed(String),
}

#[derive(Debug)]
struct Read {
    number: u64,
    request: RequestId,
    job: JobId,
    query: Query,
}

#[derive(Debug)]
enum Query {
    Lookup(Lookup),
    Scan(Box<Scan>),
    Histogram(Box<Histogram>),
    /// The look-up of the leased tasks on a page for a new owner. `last_wall` is set for the first page: the latest wall clock that the
    /// store knew before this owner.
    Leased {
        lookup: Lookup,
        page: AcquiredPage,
        last_wall: Option<Timestamp>,
    },
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            under_way: VecDeque::new(),
            begun: 0,
            names: Names::new(),
            parked: VecDeque::new(),
            cursors: None,
        }
    }

    /// Returns the number of the read that was begun last.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// Whether every read with a number up to this one is over.
    pub(super) fn is_over(&self, number: u64) -> bool {
        self.under_way.front().is_none_or(|read| read.number > number)
    }

    /// Whether a read is under way.
    pub(super) fn is_reading(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Whether a page or a histogram is being read. The catalog must not move records meanwhile.
    pub(super) fn is_scanning(&self) -> bool {
        self.under_way.iter().any(|read| matches!(read.query, Query::Scan(_) | Query::Histogram(_)))
    }

    /// Whether this job belongs to a read under way.
    pub(super) fn has(&self, job: JobId) -> bool {
        self.under_way.iter().any(|read| read.job == job)
    }

    /// Begins to look tasks up. Returns the answer if memory has it; otherwise `None`, and a job was given out.
    pub(super) fn look_up(
        &mut self,
        request: RequestId,
        wanted: Vec<Wanted>,
        view: &mut View<'_>,
    ) -> Option<Answer> {
        self.begin(request, Query::Lookup(Lookup::new(wanted, view.catalog, view.setup)), view)
    }

    /// Begins a page of what a new owner has to know. `last_wall` is given for the first page only.
    pub(super) fn acquired_page(
        &mut self,
        request: RequestId,
        after: Option<&AcquiredCursor>,
        last_wall: Option<Timestamp>,
        view: &mut View<'_>,
    ) -> Option<Answer> {
        let (page, leased) = view.catalog.acquired_page(after, view.setup.options.bounds.acquired_page);
        let leased = leased.into_iter().map(Wanted::Id).collect();
        let lookup = Lookup::new(leased, view.catalog, view.setup);
        self.begin(request, Query::Leased { lookup, page, last_wall }, view)
    }

    /// Begins a page or a histogram, or parks it. The catalog waits for the pages under way before it takes over records of a checkpoint.
    /// If new pages began all the time, the catalog would wait for ever.
    pub(super) fn scan(&mut self, request: RequestId, asked: Request, view: &mut View<'_>) -> Option<Answer> {
        if view.parks && self.is_scanning() {
            self.parked.push_back((request, asked));
            return None;
        }
        self.begin_scan(request, asked, view)
    }

    /// Begins a page or a histogram without a wait.
    pub(super) fn begin_scan(
        &mut self,
        request: RequestId,
        asked: Request,
        view: &mut View<'_>,
    ) -> Option<Answer> {
        let bounds = &view.setup.options.bounds;
        let query = match asked {
            Request::Count(histogram) => {
                Query::Histogram(Box::new(Histogram::new(histogram, view.catalog, view.settling, bounds)))
            }
            Request::ScanDue { after, until, max } => {
                let before = self.cursors.take();
                Query::Scan(Box::new(Scan::due(after, until, max, view.catalog, before, bounds)))
            }
            Request::ScanFilter { filter, after, max } => {
                Query::Scan(Box::new(Scan::filter(filter, after, max, view.catalog, bounds)))
            }
            other => unreachable!("{other:?} asks for no page"),
        };
        self.begin(request, query, view)
    }

    /// Takes out the parked requests, unless the pages under way still keep them waiting. [`begin_scan`](Self::begin_scan) has to begin
    /// each of them.
    pub(super) fn take_parked(&mut self, parks: bool) -> VecDeque<(RequestId, Request)> {
        if parks && self.is_scanning() {
            return VecDeque::new();
        }
        std::mem::take(&mut self.parked)
    }

    /// Takes in that a job of the reader is over, and the bytes that it read. Returns the answer, unless more has to be read.
    pub(super) fn completed(
        &mut self,
        job: JobId,
        result: Result<Vec<Vec<u8>>, String>,
        view: &mut View<'_>,
    ) -> Option<Answer> {
        let at = self.under_way.iter().position(|read| read.job == job)?;
        let Read { number, request, query, .. } = self.under_way.remove(at)?;
        match result {
            Ok(reads) => self.go_on(number, request, query, reads, view),
            Err(why) => Some(Answer { request, outcome: Outcome::Failed(why) }),
        }
    }

    /// Begins a read. Returns the answer if memory has all that the read needs.
    fn begin(&mut self, request: RequestId, query: Query, view: &mut View<'_>) -> Option<Answer> {
        self.begun += 1;
        self.go_on(self.begun, request, query, Vec::new(), view)
    }

    fn go_on(
        &mut self,
        number: u64,
        request: RequestId,
        mut query: Query,
        reads: Vec<Vec<u8>>,
        view: &mut View<'_>,
    ) -> Option<Answer> {
        let mut tools = Tools { catalog: view.catalog, seeds: &view.setup.seeds, names: &mut self.names };
        let next = match &mut query {
            Query::Lookup(lookup) | Query::Leased { lookup, .. } => lookup.advance(reads, tools.names),
            Query::Histogram(histogram) => histogram.advance(reads, &mut tools),
            Query::Scan(scan) => scan.advance(reads, &mut tools),
        };
        let outcome = match next {
            Ok(Next::Calls(calls)) => {
                let job = view.jobs.add(Lane::Read, calls);
                let at = self.under_way.partition_point(|read| read.number < number);
                self.under_way.insert(at, Read { number, request, job, query });
                return None;
            }
            Ok(Next::Reply(reply)) => self.finish(query, reply),
            Err(why) => Outcome::Failed(why),
        };
        Some(Answer { request, outcome })
    }

    fn finish(&mut self, query: Query, reply: Reply) -> Outcome {
        match query {
            Query::Lookup(_) | Query::Histogram(_) => {}
            Query::Scan(scan) => self.cursors = scan.into_cursors(),
            Query::Leased { page, last_wall, .. } => {
                let Reply::Found(found) = reply else { unreachable!("a look-up finds") };
                let leased = found.into_iter().filter_map(|found| match found {
                    Found::Live(task) => Some(task),
                    Found::Ended(_) | Found::Absent => None,
                });
                let page = AcquiredPage { leased: leased.collect(), ..page };
                return match last_wall {
                    Some(last_wall) => Outcome::FirstPage(page, last_wall),
                    None => Outcome::Reply(Reply::AcquiredPage(page)),
                };
            }
        }
        Outcome::Reply(reply)
    }
}

#[cfg(test)]
mod tests;
