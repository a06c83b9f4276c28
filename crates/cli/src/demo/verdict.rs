//! [`Verdict`]: the fate of every order, judged from the observations.

use super::histogram::Histogram;
use super::ledger::Page;
use super::server::Outage;

/// The account of a demo.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdict {
    /// Orders acknowledged by the server.
    pub(super) placed: usize,
    /// The close was cancelled before it began.
    pub(super) paid_in_time: usize,
    /// Closed; the customer never paid.
    pub(super) closed_unpaid: usize,
    /// Closed. The payment came too late, and the server said so.
    pub(super) closed_paid_late: usize,
    /// Cancelled after a delivery that began before the cancel. The lease of that delivery ended before the cancel, usually because of
    /// the kill.
    pub(super) cancelled_after_crash: usize,
    /// Neither cancelled nor delivered: a broken promise.
    pub(super) lost: usize,
    /// Delivered before its time, or with another time than the shop's: a broken promise.
    pub(super) early: usize,
    /// Delivered although a cancel had been acknowledged: a broken promise.
    pub(super) closed_though_paid: usize,
    /// Deliveries after the first one of the same order: at-least-once delivery allows them.
    pub(super) duplicates: usize,
    /// Lateness of tasks due while a server was up.
    pub(super) lateness: Histogram,
    /// Lateness of tasks due while no server was up.
    pub(super) lateness_in_outage: Histogram,
}

impl Verdict {
    pub(super) fn of(pages: &[Page], outage: &Outage) -> Self {
        let mut verdict = Self::default();
        for page in pages {
            verdict.judge(page, outage);
        }
        verdict
    }

    /// Whether every promise was kept.
    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0 && self.early == 0 && self.closed_though_paid == 0
    }

    fn judge(&mut self, page: &Page, outage: &Outage) {
        // The server promises nothing about a task that it did not acknowledge.
        let Some(due_at_ms) = page.due_at_ms else { return };
        self.placed += 1;
        self.duplicates += page.deliveries.len().saturating_sub(1);
        let too_early = |delivery: &&super::ledger::Delivery| {
            delivery.due_at_ms != due_at_ms || delivery.received_ms < due_at_ms
        };
        self.early += page.deliveries.iter().filter(too_early).count();

        if let Some(first) = page.deliveries.first() {
            let lateness_ms = first.received_ms - due_at_ms;
            if (outage.began_ms..=outage.ended_ms).contains(&due_at_ms) {
                self.lateness_in_outage.add(lateness_ms);
            } else {
                self.lateness.add(lateness_ms);
            }
        }
        match (page.is_paid_in_time(), page.deliveries.is_empty()) {
            (true, true) => self.paid_in_time += 1,
            (true, false) if page.was_delivered_after_cancel(due_at_ms) => self.closed_though_paid += 1,
            (true, false) => self.cancelled_after_crash += 1,
            (false, false) if page.cancel.is_some() => self.closed_paid_late += 1,
            (false, false) => self.closed_unpaid += 1,
            (false, true) => self.lost += 1,
        }
    }
}

impl Page {
    /// Whether a delivery began after the cancel was acknowledged. True if a worker sent its lease call after the answer to the cancel.
    /// Also true if that answer came before the due time, because a delivery cannot begin earlier.
    fn was_delivered_after_cancel(&self, due_at_ms: i64) -> bool {
        let Some(cancel) = self.cancel else { return false };
        cancel.answered_ms < due_at_ms
            || self.deliveries.iter().any(|delivery| delivery.asked > cancel.answered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::ledger::{CancelSeen, Delivery};
    use std::time::{Duration, Instant};
    use tickwheel_api::CancelOutcome;

    const OUTAGE: Outage =
        Outage { began_ms: 5_000, ended_ms: 6_000, in_flight: 3, lasted: Duration::from_secs(1) };

    fn page(due_at_ms: i64, cancel: Option<(CancelOutcome, i64)>, received_ms: &[i64]) -> Page {
        let asked = Instant::now();
        let deliveries = received_ms.iter().map(|&received_ms| Delivery { due_at_ms, asked, received_ms });
        Page {
            due_at_ms: Some(due_at_ms),
            cancel: cancel.map(|(outcome, answered_ms)| CancelSeen {
                outcome,
                retried: false,
                answered: asked + Duration::from_secs(1),
                answered_ms,
            }),
            deliveries: deliveries.collect(),
            acked: !received_ms.is_empty(),
        }
    }

    fn judged(page: Page) -> Verdict {
        Verdict::of(&[page], &OUTAGE)
    }

    #[test]
    fn good_fates() {
        assert_eq!(judged(page(100, Some((CancelOutcome::Cancelled, 90)), &[])).paid_in_time, 1);
        assert_eq!(judged(page(100, Some((CancelOutcome::Done, 120)), &[101])).closed_paid_late, 1);
        let closed = judged(page(100, None, &[103, 200]));
        assert_eq!((closed.closed_unpaid, closed.duplicates, closed.lateness.max_ms()), (1, 1, Some(3)));
        assert_eq!(judged(page(5_500, None, &[6_100])).lateness_in_outage.max_ms(), Some(600));
        assert_eq!(judged(page(100, Some((CancelOutcome::Cancelled, 110)), &[101])).cancelled_after_crash, 1);
        assert_eq!(judged(Page::default()).placed, 0);
    }

    #[test]
    fn broken_promises_are_found() {
        let lost = judged(page(100, None, &[]));
        assert_eq!((lost.lost, lost.is_clean()), (1, false));
        let forgotten = judged(page(100, Some((CancelOutcome::NotFound, 90)), &[]));
        assert_eq!((forgotten.lost, forgotten.is_clean()), (1, false));
        let early = judged(page(100, None, &[99]));
        assert_eq!((early.early, early.is_clean()), (1, false));
        let paid = judged(page(100, Some((CancelOutcome::Cancelled, 90)), &[101]));
        assert_eq!((paid.closed_though_paid, paid.is_clean()), (1, false));
        let mut asked_later = page(100, Some((CancelOutcome::Cancelled, 110)), &[150]);
        asked_later.deliveries[0].asked += Duration::from_secs(2);
        assert_eq!(judged(asked_later).closed_though_paid, 1);
    }
}
