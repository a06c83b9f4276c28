//! The textbook's queues, behind the same seam, to show what each idea costs.

use tickwheel_core::classic::{HashedWheel, HeapQueue, HierarchicalWheel, SimpleWheel, SortedList};
use tickwheel_core::{Handle, TimerQueue};

use super::effort::{DELAY_MAX, Effort, MILLION};
use super::subject::{Fired, Jump, Store, Subject, by_next_wake};
use super::workload::Workload;
use crate::sample::Sample;

/// One of them, as somebody would make it for the delays of the workloads.
pub(crate) trait Textbook: TimerQueue<u64> {
    /// The most timers to measure with. 0 if it cannot do that work at all.
    fn n_max(workload: Workload) -> u64 {
        enough(workload)
    }

    /// An empty one at tick 0.
    fn make() -> Self;
}

impl Textbook for SortedList<u64> {
    fn n_max(workload: Workload) -> u64 {
        if workload == Workload::W6 { 0 } else { 10_000 }
    }

    fn make() -> Self {
        Self::new(0)
    }
}

impl Textbook for HeapQueue<u64> {
    fn make() -> Self {
        Self::new(0)
    }
}

impl Textbook for SimpleWheel<u64> {
    /// 30 days would be 2,592,000,000 slots.
    fn n_max(workload: Workload) -> u64 {
        if workload == Workload::W4 { 0 } else { enough(workload) }
    }

    /// A slot for each tick, twice over, for what is moved later.
    fn make() -> Self {
        Self::new(0, 2 * DELAY_MAX as usize + 2)
    }
}

impl Textbook for HashedWheel<u64> {
    /// 512 slots, as Netty has.
    fn make() -> Self {
        Self::new(0, 512)
    }
}

impl Textbook for HierarchicalWheel<u64> {
    /// 20 slots for each level, as Kafka has.
    fn make() -> Self {
        Self::new(0, 1, 20)
    }
}

/// What they cost is clear at a million. Only their memory is looked at beyond.
fn enough(workload: Workload) -> u64 {
    if workload == Workload::W6 { u64::MAX } else { MILLION }
}

/// Does the work, unless it is too much for this one.
pub(crate) fn sample<Q: Textbook>(workload: Workload, n: u64, effort: Effort) -> Option<Sample> {
    if n > Q::n_max(workload) {
        return None;
    }
    workload.sample::<Classic<Q>>(n, effort)
}

/// Any queue that obeys the laws, through the trait alone. What fires goes through a call that is not known beforehand,
/// which the trait asks for.
#[derive(Debug)]
struct Classic<Q>(Q);

impl<Q: Textbook> Store for Classic<Q> {
    type Handle = Handle;

    fn new() -> Self {
        Self(Q::make())
    }

    #[inline]
    fn insert(&mut self, deadline: u64, value: u64) -> Handle {
        self.0.insert(deadline, value).expect("the deadline is after now and within reach")
    }

    #[inline]
    fn cancel(&mut self, handle: Handle) -> u64 {
        self.0.cancel(handle).expect("it is pending")
    }

    #[inline]
    fn replace(&mut self, handle: &mut Handle, deadline: u64, value: u64) -> u64 {
        let cancelled = self.cancel(*handle);
        *handle = self.insert(deadline, value);
        cancelled
    }

    #[inline]
    fn release(&mut self, _: Handle) {}
}

impl<Q: Textbook> Subject for Classic<Q> {
    #[inline]
    fn reschedule(&mut self, handle: &mut Handle, deadline: u64) {
        *handle = self.0.reschedule(*handle, deadline).expect("it is pending");
    }

    #[inline]
    fn advance(&mut self, now: u64) -> Fired {
        let mut fired = Fired::default();
        self.0.advance(now, &mut |_, value| fired.one(value));
        fired
    }

    fn next(&mut self) -> Jump {
        by_next_wake(self, |this| this.0.next_wake())
    }
}
