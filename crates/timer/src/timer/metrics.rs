//! [`Metrics`]: the counters of a timer.

use super::lateness::Lateness;

/// The counters of a timer at one time, returned by [`Timer::metrics`](crate::Timer::metrics).
///
/// Whenever no call is under way and no body is about to begin, `accepted = fired + cancelled + returned + pending`. While other threads
/// are at work, the counters are read one after the other: `pending` may then include entries that are ending, and is never negative. A
/// periodic task is accepted again for each of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Entries that the timer accepted. A task that runs once counts once. A periodic task counts once when it
    /// starts, and after each run once more for the next one. A sleep counts when it is first polled; one that is
    /// ready at its first poll, or is never polled, does not count. A reschedule does not count; a sleep that has
    /// ended and was reset counts anew. Internal waits count in the same way: a tick of an interval that had to wait,
    /// the limit of a timeout or of an operation, and the alarm of a delay queue.
    pub accepted: u64,
    /// Bodies that began, and sleeps that ended. A one-shot task is counted when it begins.
    pub fired: u64,
    /// Tasks whose `cancel` returned true, sleeps that were dropped before their time, and sleeps that were ready before
    /// their tick because a reset moved them to the past.
    pub cancelled: u64,
    /// Cancelled entries that never reached the driver, so they cost it nothing.
    pub cancelled_unfiled: u64,
    /// Tasks that [`shutdown`](crate::Timer::shutdown) and [`close`](crate::Timer::close) gave back, and sleeps that
    /// they ended.
    pub returned: u64,
    /// Entries that wait for their deadline, or are due and have not begun.
    pub pending: u64,
    /// Tasks that the timer refused and gave back. They are not counted in `accepted`.
    pub refused: u64,
    /// Bodies that panicked, which are counted in `fired`, too; and attempts of a [`Purgatory`](crate::Purgatory) that panicked on the
    /// executor.
    pub panicked: u64,
    /// How late bodies began and futures were woken; `None` unless [`measure_lateness`](crate::TimerBuilder::measure_lateness) was called.
    pub lateness: Option<Lateness>,
}

/// The sums over all shards.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) accepted: u64,
    pub(super) fired: u64,
    pub(super) cancelled: u64,
    pub(super) cancelled_unfiled: u64,
    pub(super) returned: u64,
    pub(super) panicked: u64,
}

impl Counts {
    pub(super) fn pending(&self) -> u64 {
        let ended = self.fired + self.cancelled + self.returned;
        debug_assert!(self.accepted >= ended, "{self:?} ended more than it accepted");
        self.accepted.saturating_sub(ended)
    }
}

impl Metrics {
    pub(super) fn new(counts: Counts, refused: u64, lateness: Option<Lateness>) -> Self {
        Self {
            accepted: counts.accepted,
            fired: counts.fired,
            cancelled: counts.cancelled,
            cancelled_unfiled: counts.cancelled_unfiled,
            returned: counts.returned,
            pending: counts.pending(),
            refused,
            panicked: counts.panicked,
            lateness,
        }
    }
}
