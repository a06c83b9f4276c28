//! [`Ledger`]: the clients' own observations, and nothing else.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use tickwheel_api::CancelOutcome;

use super::clock::Clock;

/// Observations of each order, by the number of the order. All clients write into the ledger.
///
/// The lock is held only while the ledger is written. No call runs under it.
pub(super) struct Ledger {
    clock: Clock,
    pages: Mutex<Vec<Page>>,
    in_flight: AtomicUsize,
    over: AtomicBool,
}

/// Observations of one order.
#[derive(Clone, Debug, Default)]
pub(super) struct Page {
    /// The instant at which the order has to be closed (ms since 1970); the shop decides it. `None` until the server acknowledged the put.
    pub(super) due_at_ms: Option<i64>,
    /// The result of the payment.
    pub(super) cancel: Option<CancelSeen>,
    pub(super) deliveries: Vec<Delivery>,
    /// The server acknowledged the ack of a delivery.
    pub(super) acked: bool,
}

/// The answer to a cancel.
#[derive(Clone, Copy, Debug)]
pub(super) struct CancelSeen {
    pub(super) outcome: CancelOutcome,
    /// Whether an earlier attempt may have taken effect although its answer was lost.
    pub(super) retried: bool,
    pub(super) answered: Instant,
    pub(super) answered_ms: i64,
}

/// A delivery of the order's task to a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    pub(super) due_at_ms: i64,
    /// The instant at which the lease call was sent.
    pub(super) asked: Instant,
    /// The instant at which its answer came, by the wall clock.
    pub(super) received_ms: i64,
}

/// The progress of the demo.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub(super) placed: usize,
    pub(super) paid: usize,
    pub(super) closed: usize,
    /// Placed orders without a cancel in time and without an acked delivery.
    pub(super) open: usize,
}

impl Ledger {
    /// A ledger for this number of orders, with instants of this clock.
    pub(super) fn new(orders: usize, clock: Clock) -> Self {
        let pages = Mutex::new(vec![Page::default(); orders]);
        Self { clock, pages, in_flight: AtomicUsize::new(0), over: AtomicBool::new(false) }
    }

    /// The time (ms since 1970).
    pub(super) fn wall_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// Writes observations of one order.
    pub(super) fn note(&self, number: usize, write: impl FnOnce(&mut Page)) {
        write(&mut self.lock()[number]);
    }

    /// All observations so far.
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

    /// Makes a call and counts it as under way for its duration.
    pub(super) fn call<T>(&self, call: impl FnOnce() -> T) -> T {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let answer = call();
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        answer
    }

    /// The number of calls under way that change something.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Tells all clients to stop.
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
    /// Whether the payment came before the close. `not_found` after a lost answer means that the first attempt
    /// cancelled the task.
    pub(super) fn is_paid_in_time(&self) -> bool {
        self.cancel.is_some_and(|cancel| match cancel.outcome {
            CancelOutcome::Cancelled | CancelOutcome::Revoked => true,
            CancelOutcome::NotFound => cancel.retried,
            CancelOutcome::Leased | CancelOutcome::Done => false,
        })
    }
}
