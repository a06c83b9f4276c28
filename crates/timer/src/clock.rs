//! [`Clock`]: where readings come from.

use std::sync::Arc;

use crate::Monotonic;

/// A clock that never runs backwards.
///
/// It is for waiting and for measuring, not for telling the date. Whoever needs to wait takes a
/// clock, so that a test can pass a [`ManualClock`](crate::ManualClock) in place of the
/// [`SystemClock`](crate::SystemClock).
///
/// Readings of different clocks have different origins and must not be compared. Clones of one
/// clock share its origin.
pub trait Clock: Send + Sync {
    /// The time since this clock's origin. A later call, on any thread that knows of the earlier
    /// one, never returns less.
    fn now(&self) -> Monotonic;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Monotonic {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Monotonic {
        (**self).now()
    }
}
