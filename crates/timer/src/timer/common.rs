//! [`Common`]: the data that all shards of a timer share. Every entry finds it through its shard.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::lateness::Recorder;
use super::limit::Limit;
use super::nap::Nap;
use super::refused::Refusal;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::{Clock, Monotonic, SystemClock};

/// The shared data; see the module.
pub(crate) struct Common {
    pub(super) clock: Source,
    pub(super) tick_nanos: NonZeroU64,
    pub(super) nap: Nap,
    pub(super) limit: Limit,
    pub(super) refused: AtomicU64,
    pub(super) lateness: Option<Recorder>,
}

/// The timer's clock; a [`SystemClock`](crate::SystemClock) is called without dynamic dispatch.
pub(super) enum Source {
    System(SystemClock),
    Other(Arc<dyn Clock>),
}

impl Common {
    /// Counts a refusal.
    #[cold]
    pub(super) fn refuse(&self, why: Refusal) -> Refusal {
        self.refused.fetch_add(1, Ordering::Relaxed);
        why
    }

    #[inline]
    pub(crate) fn now(&self) -> Monotonic {
        match &self.clock {
            Source::System(clock) => clock.now(),
            Source::Other(clock) => clock.now(),
        }
    }
}
