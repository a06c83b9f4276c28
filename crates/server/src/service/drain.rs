//! The drain of a server: it takes no new tasks, and workers go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::events;

/// Tells a server to take no new tasks. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Drain(Arc<AtomicBool>);

impl Drain {
    /// Refuses puts from now on; all else goes on. [`end`](Self::end), a `POST /v1/resume` or a new start ends it.
    pub fn begin(&self) {
        if !self.0.swap(true, Ordering::Relaxed) {
            tracing::warn!(event = events::DRAIN_BEGUN, "no new tasks are taken from now on");
        }
    }

    /// Takes puts again from now on.
    pub fn end(&self) {
        if self.0.swap(false, Ordering::Relaxed) {
            tracing::warn!(event = events::DRAIN_OVER, "new tasks are taken again");
        }
    }

    /// Whether puts are refused.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
