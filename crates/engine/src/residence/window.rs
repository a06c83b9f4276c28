//! The near window: tasks that are due inside the horizon are in memory before they are due. The window shrinks to fit the memory budget.
//! The window ends at a due key, not at an instant, because any number of tasks may be due at one instant.

use super::Residence;
use crate::input::Effect;
use crate::ledger::Ledger;
use crate::seam::{DueKey, Request, RequestId};
use crate::time::{Now, Seq, Timestamp};

/// How far the tasks of the store have been read into memory.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Every durable task at or before this due key is in memory, whole or as a stub. `None`: no scan has ended yet.
    loaded: Option<DueKey>,
    scan: Option<Scan>,
    /// The store failed to answer a scan: no scan begins any more.
    broken: bool,
}

#[derive(Copy, Clone, Debug)]
struct Scan {
    request: RequestId,
    /// Every durable task at or before this due key is in memory, except tasks that left memory while the scan ran.
    reached: DueKey,
    /// Tasks due until this instant are to be in memory when the scan is over, if the budget allows.
    until: Timestamp,
    /// Tasks due until this instant are to be in memory when the scan is over, whatever the budget says.
    must: Timestamp,
    kind: Kind,
    /// The due key of the earliest task that left memory while the scan ran. The scan may have missed this task.
    left_earliest: Option<DueKey>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// The scan reads tasks into memory, up to those that are due at `until`.
    Load,
    /// All tasks of the window have been read. The request asks when the next task behind the window is due, so that no scan is needed
    /// before this task comes near.
    Peek,
}

impl Window {
    /// Returns the due key up to which every durable task is in memory.
    fn reached(&self) -> DueKey {
        match &self.scan {
            None => self.loaded.unwrap_or(DueKey::START),
            Some(scan) => scan.left_earliest.map_or(scan.reached, |left| just_before(left).min(scan.reached)),
        }
    }
}

impl Residence {
    /// Whether the first scan has ended. At that moment memory had all tasks inside the horizon, as far as the budget reached.
    pub(crate) fn is_loaded(&self) -> bool {
        self.window.loaded.is_some()
    }

    /// Whether a scan is under way, to load tasks or to ask for the next task.
    pub(super) fn is_scanning(&self) -> bool {
        self.window.scan.is_some()
    }

    /// Returns the lead time (ms): a scan loads the tasks that are due within this time, and they stay in memory, even if memory is full.
    fn lead_ms(&self) -> u64 {
        (self.config.horizon_ms / 8).clamp(2, 2_000)
    }

    /// Returns when the next scan has to begin. `None`: no task is left to load, a scan is under way, no scan has ended yet, or a scan has
    /// failed.
    pub(super) fn load_at(&self) -> Option<Timestamp> {
        let loaded = self.window.loaded.filter(|loaded| loaded.due_at < Timestamp::MAX)?;
        if self.window.scan.is_some() || self.window.broken {
            return None;
        }
        // If more than half of the budget is in use, the next scan begins late: only the tasks of the lead time have to be in memory.
        let has_spare = self.bytes() <= self.config.near_bytes_max / 2;
        let ahead_ms = if has_spare { self.config.horizon_ms / 2 } else { self.lead_ms() / 2 };
        let ahead = i64::try_from(ahead_ms).unwrap_or(i64::MAX);
        // Some tasks of the last millisecond may be missing, unless that millisecond was read to its end.
        let whole = i64::from(loaded.put_seq == Seq(u64::MAX));
        let at = loaded.due_at.as_ms().saturating_add(whole).saturating_sub(ahead).max(0);
        Some(Timestamp::from_ms(at).unwrap_or(Timestamp::EPOCH))
    }

    /// Returns the latest due time of the tasks that may stay in memory: the end of the horizon, or `until` of the scan under way if that
    /// is later.
    pub(super) fn keep_until(&self, now: Now) -> Timestamp {
        let horizon = now.wall.saturating_plus_ms(self.config.horizon_ms);
        self.window.scan.as_ref().map_or(horizon, |scan| scan.until.max(horizon))
    }

    /// Returns the latest due time of the tasks that stay in memory even if memory is full: the end of the lead time, or `must` of the scan
    /// under way if that is later.
    pub(super) fn must_until(&self, now: Now) -> Timestamp {
        let lead = now.wall.saturating_plus_ms(self.lead_ms());
        self.window.scan.as_ref().map_or(lead, |scan| scan.must.max(lead))
    }

    /// Whether a task with this due key stays in memory once the task is durable.
    pub(crate) fn keeps(&self, now: Now, place: DueKey) -> bool {
        place.due_at <= self.must_until(now)
            || place.due_at <= self.keep_until(now) && (!self.is_full() || place <= self.window.reached())
    }

    /// Whether memory has every task that is due by now, or a scan has failed. Until then the engine cannot tell which task is the first of
    /// a line.
    pub(crate) fn knows_what_is_due(&self, now: Now) -> bool {
        self.has_what_is_due(now) || self.window.broken
    }

    /// Whether memory has every task that is due by now. Once a scan has failed, the missing tasks are not loaded any more.
    pub(crate) fn has_what_is_due(&self, now: Now) -> bool {
        self.window.reached() >= DueKey { due_at: now.wall, put_seq: Seq(u64::MAX) }
    }

    /// Starts the first scan, and later a scan whenever the instant of `load_at` has come. Does nothing while a scan is under way or once
    /// one has failed.
    pub(crate) fn load_ahead(&mut self, ledger: &mut Ledger, now: Now, out: &mut Vec<Effect>) {
        if self.window.scan.is_some() || self.window.broken {
            return;
        }
        let after = match (self.window.loaded, self.load_at()) {
            (None, _) => DueKey::START,
            (Some(loaded), Some(at)) if at <= now.wall => loaded,
            (Some(_), _) => return,
        };
        let must = now.wall.saturating_plus_ms(self.lead_ms());
        let horizon = now.wall.saturating_plus_ms(self.config.horizon_ms);
        let until = if self.is_full() { must } else { horizon.max(must) };
        let request = RequestId(0);
        let scan = Scan { request, reached: after, until, must, kind: Kind::Load, left_earliest: None };
        self.scan(ledger, scan, out);
    }

    /// Asks the store for tasks behind the due key that `scan` has reached. Makes `scan` the scan under way.
    fn scan(&mut self, ledger: &mut Ledger, scan: Scan, out: &mut Vec<Effect>) {
        let Scan { reached: after, until, .. } = scan;
        let request = match scan.kind {
            Kind::Load => Request::ScanDue { after, until, max: self.config.scan_max },
            Kind::Peek => Request::ScanDue { after, until: Timestamp::MAX, max: 1 },
        };
        let request = ledger.request(request, out);
        self.begin_read(request);
        self.window.scan = Some(Scan { request, ..scan });
    }

    /// Whether `request` belongs to the scan under way.
    pub(crate) fn has_scan(&self, request: RequestId) -> bool {
        self.window.scan.as_ref().is_some_and(|scan| scan.request == request)
    }

    /// Returns whether the next task of a page goes into memory. If not, ends the scan just before this task. While tasks go into memory,
    /// the scan stays under way, so that `keep_until` covers them even if the wall clock has stepped back since the scan began.
    pub(crate) fn scan_keeps(&mut self, now: Now, place: DueKey) -> bool {
        let keeps = self.keeps(now, place);
        if !keeps {
            self.end_scan(just_before(place));
        }
        keeps
    }

    /// Notes that the task at `place`, which the scan has brought, is in memory.
    pub(crate) fn scan_reached(&mut self, place: DueKey) {
        self.scan_under_way().reached = place;
    }

    /// Whether the scan under way reads tasks into memory. If not, the scan only asks which task is due next.
    pub(crate) fn scan_loads(&mut self) -> bool {
        self.scan_under_way().kind == Kind::Load
    }

    /// Goes on after a page whose tasks are all in memory. Asks for the next page, or after the last page for the first task behind the
    /// window.
    pub(crate) fn scan_on(&mut self, ledger: &mut Ledger, next: Option<DueKey>, out: &mut Vec<Effect>) {
        let scan = *self.scan_under_way();
        self.end_read(scan.request);
        match next {
            Some(next) => self.scan(ledger, Scan { reached: next, ..scan }, out),
            None => {
                let reached = DueKey { due_at: scan.until, put_seq: Seq(u64::MAX) };
                self.scan(ledger, Scan { reached, kind: Kind::Peek, ..scan }, out);
            }
        }
    }

    /// Ends the scan. The window then ends just before `first`, the first task behind it; `None`: the store has no later task, so the
    /// window has no end.
    pub(crate) fn peeked(&mut self, first: Option<DueKey>) {
        let end = DueKey { due_at: Timestamp::MAX, put_seq: Seq(u64::MAX) };
        self.end_scan(first.map_or(end, just_before));
    }

    fn scan_under_way(&mut self) -> &mut Scan {
        self.window.scan.as_mut().expect("the page answers the scan under way")
    }

    fn end_scan(&mut self, reached: DueKey) {
        let scan = self.scan_under_way();
        scan.reached = reached;
        let request = scan.request;
        self.end_read(request);
        let reached = self.window.reached();
        self.window.scan = None;
        self.window.loaded = Some(reached);
    }

    /// Ends the scan under way, because the store failed to answer it. No further scan begins.
    pub(crate) fn scan_failed(&mut self) {
        self.window.scan = None;
        self.window.broken = true;
    }

    /// Notes that the task at `place` has left memory: the window now ends before this task, if it did not already.
    pub(crate) fn left(&mut self, place: DueKey) {
        let window = &mut self.window;
        window.loaded = window.loaded.map(|loaded| loaded.min(just_before(place)));
        if let Some(scan) = &mut window.scan {
            scan.left_earliest = Some(scan.left_earliest.map_or(place, |earliest| earliest.min(place)));
        }
    }
}

/// Returns the due key just before `place`. The subtraction cannot fail, because no task has `put_seq` 0.
fn just_before(place: DueKey) -> DueKey {
    DueKey { put_seq: Seq(place.put_seq.0 - 1), ..place }
}
