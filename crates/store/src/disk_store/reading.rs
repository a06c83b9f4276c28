//! What the store reads for others: look-ups, pages and counts, a few at a time, while commits go on.

use std::collections::VecDeque;

use tickwheel_engine::{AcquiredPage, Reply, Request, RequestId, Timestamp};

use super::count::Count;
use super::look::Look;
use super::scan::{Cursors, Scan};
use super::store::DiskStore;
use crate::codec::Names;
use crate::disk::Disk;
use crate::io::{Call, Completion, Io, JobId, Lane};

/// The reads under way, oldest first.
#[derive(Debug)]
pub(super) struct Reading {
    under_way: VecDeque<Read>,
    /// Counts them, so that what is to be removed can wait for those that may still need it.
    begun: u64,
    pub(super) names: Names,
    /// Pages that wait until memory has taken over a part of a checkpoint.
    pub(super) parked: VecDeque<(RequestId, Request)>,
    /// Where the last page ended, to go on from there without reading a block twice.
    pub(super) cursors: Option<Cursors>,
}

#[derive(Debug)]
struct Read {
    number: u64,
    request: RequestId,
    job: JobId,
    what: What,
}

/// One of them.
#[derive(Debug)]
pub(super) enum What {
    Look(Look),
    Scan(Box<Scan>),
    Count(Box<Count>),
    /// The leased tasks of a page for a new owner; with the first page, the latest wall instant before it.
    Leased {
        look: Look,
        page: AcquiredPage,
        last_wall: Option<Timestamp>,
    },
}

/// How a read goes on.
#[derive(Debug)]
pub(super) enum Next {
    /// These calls, all of them reads, have to be made.
    Calls(Vec<Call>),
    /// It is over.
    Reply(Reply),
    /// What was read is no record: file, offset, and what is wrong.
    Damaged(String),
}

impl Reading {
    pub(super) fn new() -> Self {
        Self {
            under_way: VecDeque::new(),
            begun: 0,
            names: Names::new(),
            parked: VecDeque::new(),
            cursors: None,
        }
    }

    /// The number of the read that was begun last.
    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    /// Whether every read up to this number is over.
    pub(super) fn is_over(&self, number: u64) -> bool {
        self.under_way.front().is_none_or(|read| read.number > number)
    }

    /// Whether a page is being read: what it passes by must not move meanwhile.
    pub(super) fn is_scanning(&self) -> bool {
        self.under_way.iter().any(|read| matches!(read.what, What::Scan(_) | What::Count(_)))
    }
}

impl<D: Disk, I: Io<D>> DiskStore<D, I> {
    /// Whether a new page has to wait: memory waits for those under way to take over what a checkpoint wrote, and would wait for ever if
    /// there were always one.
    pub(super) fn parks_scans(&self) -> bool {
        self.upkeep.is_settling() && self.reading.is_scanning() && self.failed.is_none()
    }

    /// Begins the pages that had to wait, once they need not.
    pub(super) fn begin_parked(&mut self) {
        if self.parks_scans() {
            return;
        }
        for (id, request) in std::mem::take(&mut self.reading.parked) {
            self.begin_scan(id, request);
        }
    }

    /// Begins to read a page.
    pub(super) fn begin_scan(&mut self, id: RequestId, request: Request) {
        let bounds = &self.options.bounds;
        let scan = match request {
            Request::Count(census) => {
                // After a failure it never settles.
                let settling = self.upkeep.is_settling();
                let count = Count::new(census, &self.catalog, settling, bounds);
                return self.begin_read(id, What::Count(Box::new(count)));
            }
            Request::ScanDue { after, until, max } => {
                let before = self.reading.cursors.take();
                Scan::due(after, until, max, &self.catalog, self.layout, before, bounds)
            }
            Request::ScanFilter { filter, after, max } => {
                Scan::filter(filter, after, max, &self.catalog, self.layout, bounds)
            }
            other => unreachable!("{other:?} asks for no page"),
        };
        self.begin_read(id, What::Scan(Box::new(scan)));
    }

    /// Begins a read, or answers at once if memory has all it needs.
    pub(super) fn begin_read(&mut self, request: RequestId, mut what: What) {
        match self.advance(&mut what) {
            Next::Reply(reply) => self.finish_read(request, what, reply),
            Next::Damaged(why) => self.refuse_read(request, why),
            Next::Calls(calls) => {
                let job = self.send(Lane::Read, calls);
                self.reading.begun += 1;
                let number = self.reading.begun;
                self.reading.under_way.push_back(Read { number, request, job, what });
            }
        }
    }

    /// Whether the completion was of a read; then that goes on.
    pub(super) fn read_completed(&mut self, completion: &mut Completion) -> bool {
        let Some(at) = self.reading.under_way.iter().position(|read| read.job == completion.id) else {
            return false;
        };
        let request = self.reading.under_way[at].request;
        if let Err(error) = &completion.result {
            self.reading.under_way.remove(at);
            self.refuse_read(request, error.to_string());
            return true;
        }
        let reads = std::mem::take(&mut completion.reads);
        let mut read = self.reading.under_way.remove(at).expect("it was found there");
        match &mut read.what {
            What::Look(look) | What::Leased { look, .. } => look.take(reads),
            What::Scan(scan) => scan.take(reads),
            What::Count(count) => count.take(reads),
        }
        match self.advance(&mut read.what) {
            Next::Reply(reply) => self.finish_read(request, read.what, reply),
            Next::Damaged(why) => self.refuse_read(request, why),
            Next::Calls(calls) => {
                read.job = self.send(Lane::Read, calls);
                self.reading.under_way.insert(at, read);
            }
        }
        true
    }

    fn advance(&mut self, what: &mut What) -> Next {
        match what {
            What::Look(look) | What::Leased { look, .. } => look.advance(&mut self.reading.names),
            What::Count(count) => count.advance(&self.catalog, &self.seeds, &mut self.reading.names),
            What::Scan(scan) => scan.advance(&self.catalog, &self.seeds, &mut self.reading.names),
        }
    }

    fn finish_read(&mut self, request: RequestId, what: What, reply: Reply) {
        match what {
            What::Look(_) | What::Count(_) => self.replies.push((request, reply)),
            What::Leased { page, last_wall, .. } => self.acquired(request, reply, page, last_wall),
            What::Scan(scan) => {
                self.reading.cursors = scan.into_cursors();
                self.replies.push((request, reply));
            }
        }
    }

    /// What was synced cannot be read: nothing is guessed, and nothing is written on top of it.
    fn refuse_read(&mut self, request: RequestId, why: String) {
        self.replies.push((request, Reply::Failed { why: why.clone() }));
        self.fail_because(why);
    }
}
