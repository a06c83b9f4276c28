//! [`Service`]: the seam behind which every implementation stands.

use std::sync::Arc;
use std::time::Duration;

use tickwheel::{Monotonic, SystemClock};

use super::stamps::Stamps;

/// A timer that runs, and that any thread may use.
///
/// Workloads are generic over it, so that none of the calls that are measured is virtual.
pub(crate) trait Service: Sync + Sized {
    /// The nanoseconds of a tick, if its ticks begin at multiples of it on the clock it was given.
    const TICK_NANOS: Option<u64> = None;

    /// What a thread uses it by. It stays on its thread.
    type Producer<'a>: Producer
    where
        Self: 'a;

    /// One with nothing pending; on this clock, if it takes one.
    fn start(clock: Option<SystemClock>) -> Self;

    /// For the thread that asks. A number belongs to one thread.
    fn producer(&self, number: u32) -> Self::Producer<'_>;

    /// What it counts of its own.
    fn counts(&self) -> Option<Counts> {
        None
    }
}

/// One thread's way to schedule and to cancel.
pub(crate) trait Producer {
    /// The claim on a pending timer.
    type Claim;

    /// Starts a timer whose body does nothing.
    fn schedule(&mut self, delay: Duration) -> Self::Claim;

    /// Whether it will not fire any more, as far as the implementation tells.
    fn cancel(&mut self, claim: Self::Claim) -> bool;
}

/// One whose timers can do something: they say when they fired.
pub(crate) trait Stamping: Producer {
    /// Starts a timer that stamps `index` and is never cancelled.
    fn stamp_at(&mut self, due: Monotonic, stamps: &Arc<Stamps>, index: usize);
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) cancelled: u64,
    /// Of these, the ones that the timer's own thread had not filed yet.
    pub(crate) cancelled_unfiled: u64,
}
