//! [`Clock`]: the source of readings. [`Follower`]: a waiter that a clock notifies when it is moved by hand.

use std::sync::{Arc, Weak};

use crate::Monotonic;

/// A clock that never runs backwards.
///
/// A clock measures durations and waits; it does not tell the date. Code that waits takes a clock as an argument, so that a test can pass a
/// [`ManualClock`](crate::ManualClock) in place of the [`SystemClock`](crate::SystemClock).
///
/// Readings of different clocks have different origins and must not be compared. Clones of one
/// clock share its origin.
///
/// Most clocks run by themselves, as fast as the system's monotonic clock, and implement only `now`. A clock that is moved by hand
/// implements [`follow`](Self::follow), too.
pub trait Clock: Send + Sync {
    /// The time since this clock's origin. A call never returns less than an earlier call, also on another thread that knows of the earlier
    /// call.
    ///
    /// A timer calls this method while it holds a lock. The method must therefore not call a timer, and must not panic: a panic would end
    /// the thread that drives the timer, and no task would come due any more.
    fn now(&self) -> Monotonic;

    /// Returns how this clock moves. A clock that is moved by hand stores `follower`. After each step it calls [`moved`](Follower::moved),
    /// before the call that moves the clock returns, and without holding a lock. It forgets a follower that no longer exists.
    fn follow(&self, follower: Weak<dyn Follower>) -> Motion {
        drop(follower);
        Motion::Real
    }
}

/// How a [`Clock`] moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// The clock runs by itself, at the rate of the system's monotonic clock, so the system's timeouts end on time.
    Real,
    /// The clock moves only when a caller moves it, and then notifies its followers.
    ByHand,
}

/// Waits by a clock that is moved by hand.
pub trait Follower: Send + Sync {
    /// The clock has moved. The follower handles everything that has come due, and then returns.
    fn moved(&self);

    /// The reading at which the follower has to act next. A reading that has passed means at once; `None` means never. A clock may call
    /// this method in order to stop at that reading.
    fn next(&self) -> Option<Monotonic> {
        None
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Monotonic {
        (**self).now()
    }

    fn follow(&self, follower: Weak<dyn Follower>) -> Motion {
        (**self).follow(follower)
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Monotonic {
        (**self).now()
    }

    fn follow(&self, follower: Weak<dyn Follower>) -> Motion {
        (**self).follow(follower)
    }
}
