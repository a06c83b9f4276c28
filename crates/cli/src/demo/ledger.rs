//! [`Ledger`]: what the clients saw with their own eyes, and nothing else.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Instant, SystemTime};

use tickwheel_api::CancelOutcome;

/// What was seen of each order, by number. All clients write into it.
///
/// The lock is held for a few stores; no call is made under it.
pub(super) struct Ledger {
    pages: Mutex<Vec<Page>>,
    in_flight: AtomicUsize,
    over: AtomicBool,
}

/// What was seen of one order.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// When it has to be closed, ms since 1970, as the shop decided. Set once the server has acknowledged it.
    pub(super) due_at_ms: Option<i64>,
    /// What the payment found.
    pub(super) cancel: Option<CancelSeen>,
    pub(super) deliveries: Vec<Delivery>,
    /// The delivery was acked, and the server said so.
    pub(super) acked: bool,
}

/// The answer to a cancel.
#[derive(Clone, Copy, Debug)]
pub(super) struct CancelSeen {
    pub(super) outcome: CancelOutcome,
    /// Whether an earlier attempt may have taken effect, its answer lost.
    pub(super) retried: bool,
    pub(super) answered: Instant,
    pub(super) answered_ms: i64,
}

/// A worker got the order's task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) due_at_ms: i64,
    /// When the lease call was sent.
    pub(super) asked: Instant,
    /// When its answer was there, by the wall clock.
    pub(super) received_ms: i64,
}

/// How far the play is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) placed: usize,
    pub(super) paid: usize,
    pub(super) closed: usize,
    /// Placed orders of which neither a cancel in time nor an acked delivery was seen.
    pub(super) open: usize,
}

impl Ledger {
    pub(super) fn new(orders: usize) -> Self {
        let pages = Mutex::new(vec![Page::default(); orders]);
        Self { pages, in_flight: AtomicUsize::new(0), over: AtomicBool::new(false) }
    }

    /// Writes about one order.
    pub(super) fn note(&self, number: usize, write: impl FnOnce(&mut Page)) {
        write(&mut self.lock()[number]);
    }

    /// Everything seen so far.
    pub(super) fn pages(&self) -> Vec<Page> {
        self.lock().clone()
    }

    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for page in self.lock().iter() {
            let placed = page.due_at_ms.is_some();
            let paid = page.is_paid_in_time();
            counts.placed += usize::from(placed);
            counts.paid += usize::from(paid);
            counts.closed += usize::from(!page.deliveries.is_empty());
            counts.open += usize::from(placed && !paid && !page.acked);
        }
        counts
    }

    /// Makes a call and counts it as under way as long as it is.
    pub(super) fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let answer = call();
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        answer
    }

    /// Calls under way that change something.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Tells every client to go home.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Page>> {
        self.pages.lock().expect("no thread panics while it writes a page")
    }
}

impl Page {
    /// Whether the payment came before the close. `not_found` after a lost answer means that the first attempt did it.
    pub(super) fn is_paid_in_time(&self) -> bool {
        self.cancel.is_some_and(|cancel| match cancel.outcome {
            CancelOutcome::Cancelled | CancelOutcome::Revoked => true,
            CancelOutcome::NotFound => cancel.retried,
            CancelOutcome::Leased | CancelOutcome::Done => false,
        })
    }
}

/// The wall clock, ms since 1970.
pub(super) fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
