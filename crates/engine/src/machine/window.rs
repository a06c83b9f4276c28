//! The near window: what is due inside the horizon is in memory in time, what is due beyond it is not.

use super::Engine;
use super::entries::{At, Slot};
use crate::input::Effect;
use crate::seam::{Page, Place, Request, RequestId};
use crate::time::{Now, Seq, Timestamp};

/// How far the store has been read.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Every durable task due at or before is in memory. `None`: nothing has been read yet.
    loaded_until: Option<Timestamp>,
    scan: Option<Scan>,
}

#[derive(Debug)]
struct Scan {
    request: RequestId,
    /// What is to be in memory when it is over.
    until: Timestamp,
    kind: Kind,
    /// The earliest task that left memory while it ran; it may have missed that one.
    left_earliest: Option<Timestamp>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// Reads the tasks due until then.
    Load,
    /// They are read; this asks when the next one after is due, so that nothing has to be asked before.
    Peek,
}

impl Window {
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded_until.is_some()
    }

    pub(super) fn is_scanning(&self) -> bool {
        self.scan.is_some()
    }

    pub(super) fn request(&self) -> Option<RequestId> {
        self.scan.as_ref().map(|scan| scan.request)
    }

    /// When tasks have to be loaded next; `None` if nothing is left to load, or a scan is under way.
    pub(super) fn load_at(&self, horizon_ms: u64) -> Option<Timestamp> {
        let until = self.loaded_until.filter(|&until| until < Timestamp::MAX && self.scan.is_none())?;
        let ahead = i64::try_from(horizon_ms / 2).unwrap_or(i64::MAX);
        Some(
            Timestamp::from_ms(until.as_ms().saturating_sub(ahead).max(0))
                .unwrap_or(Timestamp::EPOCH)
                .saturating_plus_ms(1),
        )
    }
}

impl Engine {
    /// Tasks due later than this leave memory.
    pub(super) fn keep_until(&self, now: Now) -> Timestamp {
        let horizon = now.wall.saturating_plus_ms(self.config.horizon_ms);
        self.window.scan.as_ref().map_or(horizon, |scan| scan.until.max(horizon))
    }

    /// Starts to load tasks when half of the horizon is used up.
    pub(super) fn load_ahead(&mut self, now: Now, out: &mut Vec<Effect>) {
        if self.window.is_scanning() || self.stopped {
            return;
        }
        let after = match (self.window.loaded_until, self.window.load_at(self.config.horizon_ms)) {
            (None, _) => Place::START,
            (Some(until), Some(at)) if at <= now.wall => Place { due_at: until, put_seq: Seq(u64::MAX) },
            (Some(_), _) => return,
        };
        let until = now.wall.saturating_plus_ms(self.config.horizon_ms);
        self.scan(after, until, Kind::Load, None, out);
    }

    fn scan(
        &mut self,
        after: Place,
        until: Timestamp,
        kind: Kind,
        left_earliest: Option<Timestamp>,
        out: &mut Vec<Effect>,
    ) {
        let request = match kind {
            Kind::Load => Request::ScanDue { after, until, max: self.config.scan_max },
            Kind::Peek => Request::ScanDue { after, until: Timestamp::MAX, max: 1 },
        };
        let request = self.request(request, out);
        self.window.scan = Some(Scan { request, until, kind, left_earliest });
    }

    pub(super) fn scanned(&mut self, now: Now, page: Page, out: &mut Vec<Effect>) {
        // The scan stays in place while its tasks are loaded, so that `keep_until` covers them though the wall clock may
        // have stepped back since it began.
        let Scan { until, kind, .. } =
            *self.window.scan.as_ref().expect("the page answers the scan under way");
        match kind {
            Kind::Load => {
                for task in page.tasks {
                    self.load(now, task);
                }
                let left_earliest = self.window.scan.as_ref().and_then(|scan| scan.left_earliest);
                match page.next {
                    Some(next) => self.scan(next, until, Kind::Load, left_earliest, out),
                    None => {
                        let after = Place { due_at: until, put_seq: Seq(u64::MAX) };
                        self.scan(after, until, Kind::Peek, left_earliest, out);
                    }
                }
            }
            Kind::Peek => {
                let left_earliest = self.window.scan.take().and_then(|scan| scan.left_earliest);
                let next = page.tasks.first().map(|task| task.due_at);
                let next = [next, left_earliest].into_iter().flatten().min();
                self.window.loaded_until = Some(next.map_or(Timestamp::MAX, just_before));
            }
        }
        self.retire();
    }

    /// A durable entry that nothing needs in memory leaves it.
    pub(super) fn forget_if_far(&mut self, slot: Slot, now: Now) {
        let entry = self.entries.get(slot);
        if entry.dirty.is_some() || !matches!(entry.at, At::Far) {
            return;
        }
        let due_at = entry.task.due_at;
        if due_at <= self.keep_until(now) {
            // The horizon has come nearer since it was placed.
            return self.place(slot, now);
        }
        if self.reads_under_way() {
            return self.linger(slot);
        }
        self.left(due_at);
        self.entries.remove(slot);
    }

    /// A task due then is no longer in memory.
    pub(super) fn left(&mut self, due_at: Timestamp) {
        if crate::planted::is("lost-wake-up") {
            return;
        }
        let window = &mut self.window;
        window.loaded_until = window.loaded_until.map(|until| until.min(just_before(due_at)));
        if let Some(scan) = &mut window.scan {
            scan.left_earliest = Some(scan.left_earliest.map_or(due_at, |earliest| earliest.min(due_at)));
        }
    }
}

fn just_before(instant: Timestamp) -> Timestamp {
    Timestamp::from_ms(instant.as_ms().saturating_sub(1)).unwrap_or(Timestamp::EPOCH)
}
