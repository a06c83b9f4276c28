//! The near window. Tasks that are due inside the horizon are in memory in time; tasks that are due beyond it are not. The horizon shrinks
//! to fit the budget. It ends at a place, not at an instant, because any number of tasks may share an instant.

use super::Residence;
use crate::input::Effect;
use crate::ledger::Ledger;
use crate::seam::{DueKey, Request, RequestId};
use crate::time::{Now, Seq, Timestamp};

/// How far the store has been read.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Every durable task at or before this place is in memory, whole or as a stub. `None`: nothing has been read yet.
    loaded: Option<DueKey>,
    scan: Option<Scan>,
    /// The store failed to answer a scan: nothing is loaded any more.
    broken: bool,
}

#[derive(Copy, Clone, Debug)]
struct Scan {
    request: RequestId,
    /// Every durable task at or before this place is in memory, except those that left.
    reached: DueKey,
    /// Tasks due until this instant are to be in memory when the scan is over, if the budget allows.
    until: Timestamp,
    /// Tasks due until this instant are to be in memory when the scan is over, whatever the budget says.
    must: Timestamp,
    kind: Kind,
    /// The earliest task that left memory while the scan ran; the scan may have missed that task.
    left_earliest: Option<DueKey>,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// Reads the tasks that are due until the end of the scan.
    Load,
    /// All tasks of the window are read. This request asks when the next task behind it is due, so that the store need not be asked before
    /// then.
    Peek,
}

impl Window {
    /// Every durable task at or before this place is in memory.
    fn reached(&self) -> DueKey {
        match &self.scan {
            None => self.loaded.unwrap_or(DueKey::START),
            Some(scan) => scan.left_earliest.map_or(scan.reached, |left| just_before(left).min(scan.reached)),
        }
    }
}

impl Residence {
    /// Whether all tasks inside the horizon, as far as the budget reaches, are in memory.
    pub(crate) fn is_loaded(&self) -> bool {
        self.window.loaded.is_some()
    }

    /// Whether tasks are being loaded.
    pub(super) fn is_scanning(&self) -> bool {
        self.window.scan.is_some()
    }

    /// Tasks that are due within this time (ms) are in memory, whatever the budget says.
    fn lead_ms(&self) -> u64 {
        (self.config.horizon_ms / 8).clamp(2, 2_000)
    }

    /// When tasks have to be loaded next; `None` if nothing is left to load, or a scan is under way.
    pub(super) fn load_at(&self) -> Option<Timestamp> {
        let loaded = self.window.loaded.filter(|loaded| loaded.due_at < Timestamp::MAX)?;
        if self.window.scan.is_some() || self.window.broken {
            return None;
        }
        // If less than half of the budget is free, no more is loaded than has to be.
        let has_spare = self.bytes() <= self.config.near_bytes_max / 2;
        let ahead_ms = if has_spare { self.config.horizon_ms / 2 } else { self.lead_ms() / 2 };
        let ahead = i64::try_from(ahead_ms).unwrap_or(i64::MAX);
        // Some tasks of the last millisecond may be missing, unless that millisecond was read to its end.
        let whole = i64::from(loaded.put_seq == Seq(u64::MAX));
        let at = loaded.due_at.as_ms().saturating_add(whole).saturating_sub(ahead).max(0);
        Some(Timestamp::from_ms(at).unwrap_or(Timestamp::EPOCH))
    }

    /// Tasks that are due after this instant leave memory.
    pub(super) fn keep_until(&self, now: Now) -> Timestamp {
        let horizon = now.wall.saturating_plus_ms(self.config.horizon_ms);
        self.window.scan.as_ref().map_or(horizon, |scan| scan.until.max(horizon))
    }

    /// Tasks that are due until this instant stay in memory, whatever the budget says.
    pub(super) fn must_until(&self, now: Now) -> Timestamp {
        let lead = now.wall.saturating_plus_ms(self.lead_ms());
        self.window.scan.as_ref().map_or(lead, |scan| scan.must.max(lead))
    }

    /// Whether a task at this place stays in memory once it is durable.
    pub(crate) fn keeps(&self, now: Now, place: DueKey) -> bool {
        place.due_at <= self.must_until(now)
            || place.due_at <= self.keep_until(now) && (!self.is_full() || place <= self.window.reached())
    }

    /// Whether memory knows every task that is due by now. Until then the engine cannot tell which task comes first. Also true once a scan
    /// has failed.
    pub(crate) fn knows_what_is_due(&self, now: Now) -> bool {
        self.has_what_is_due(now) || self.window.broken
    }

    /// Whether memory has every task that is due by now. Once the store has failed to answer a scan, memory does not get the rest any more.
    pub(crate) fn has_what_is_due(&self, now: Now) -> bool {
        self.window.reached() >= DueKey { due_at: now.wall, put_seq: Seq(u64::MAX) }
    }

    /// Starts to load tasks when half of the horizon is used up, or there is memory to spare.
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

    /// Asks for what lies behind the place that `scan` has reached.
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

    /// Whether the scan under way has this number.
    pub(crate) fn has_scan(&self, request: RequestId) -> bool {
        self.window.scan.as_ref().is_some_and(|scan| scan.request == request)
    }

    /// Decides on the next task of a page that the scan under way has brought. Returns whether the task stays in memory; if not, the scan
    /// ends before it. The scan stays in place while its tasks are loaded, so that `keep_until` covers them even if the wall clock has
    /// stepped back since it began.
    pub(crate) fn scan_keeps(&mut self, now: Now, place: DueKey) -> bool {
        let keeps = self.keeps(now, place);
        if !keeps {
            self.end_scan(just_before(place));
        }
        keeps
    }

    /// A task that the scan has brought is in memory.
    pub(crate) fn scan_reached(&mut self, place: DueKey) {
        self.scan_under_way().reached = place;
    }

    /// Whether the scan under way brings tasks to load. If not, it asks which task is due next.
    pub(crate) fn scan_loads(&mut self) -> bool {
        self.scan_under_way().kind == Kind::Load
    }

    /// All tasks of a page are in memory. The scan goes on behind the page, or asks which task is due next.
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

    /// The scan under way has found the next task behind the loaded part.
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

    /// The store failed to answer the scan under way.
    pub(crate) fn scan_failed(&mut self) {
        self.window.scan = None;
        self.window.broken = true;
    }

    /// The task at this place is no longer in memory.
    pub(crate) fn left(&mut self, place: DueKey) {
        let window = &mut self.window;
        window.loaded = window.loaded.map(|loaded| loaded.min(just_before(place)));
        if let Some(scan) = &mut window.scan {
            scan.left_earliest = Some(scan.left_earliest.map_or(place, |earliest| earliest.min(place)));
        }
    }
}

/// The place before this one: no task has `put_seq` 0.
fn just_before(place: DueKey) -> DueKey {
    DueKey { put_seq: Seq(place.put_seq.0 - 1), ..place }
}
