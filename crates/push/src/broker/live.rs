//! [`Live`]: an open connection.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

/// An open connection to a broker. Messages of several targets may be under way on it at one time.
#[derive(Debug)]
pub struct Live<L> {
    inner: L,
    is_left: AtomicBool,
}

impl<L> Live<L> {
    pub(super) fn new(inner: L) -> Self {
        Self { inner, is_left: AtomicBool::new(false) }
    }

    /// Lets the next message open another connection. Messages that are under way on this one stay there.
    pub fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Whether the next message opens another connection.
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }
}

impl<L> Deref for Live<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.inner
    }
}
