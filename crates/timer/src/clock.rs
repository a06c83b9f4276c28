//! [`Clock`]: where readings come from, and [`Follower`]: who is told when a clock is moved by hand.

use std::sync::{Arc, Weak};

use crate::Monotonic;

/// A clock that never runs backwards.
///
/// It is for waiting and for measuring, not for telling the date. Whoever needs to wait takes a
/// clock, so that a test can pass a [`ManualClock`](crate::ManualClock) in place of the
/// [`SystemClock`](crate::SystemClock).
///
/// Readings of different clocks have different origins and must not be compared. Clones of one
/// clock share its origin.
///
/// Most clocks run by themselves, as fast as the system's monotonic clock, and bring `now` alone.
/// A clock that jumps brings [`follow`](Self::follow), too.
pub trait Clock: Send + Sync {
    /// The time since this clock's origin. A later call, on any thread that knows of the earlier
    /// one, never returns less.
    ///
    /// A timer asks while it holds a lock of its own. So it must not call a timer, and not panic:
    /// that would end the thread that drives one, and nothing would come due any more.
    fn now(&self) -> Monotonic;

    /// Says how this clock moves. If by hand, it keeps `follower` and calls
    /// [`moved`](Follower::moved) after each step, before whoever moved it goes on, and with no
    /// lock of its own held; a follower that is gone is forgotten.
    fn follow(&self, follower: Weak<dyn Follower>) -> Motion {
        drop(follower);
        Motion::Real
    }
}

/// How a [`Clock`] moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// By itself, at the rate of the system's monotonic clock: a wait of the system ends on time.
    Real,
    /// When it is told to, and it tells its followers.
    ByHand,
}

/// Whoever waits by a clock that is moved by hand.
pub trait Follower: Send + Sync {
    /// The clock has moved. Does whatever has come due, and returns when it is done.
    fn moved(&self);

    /// When it has something to do next; a reading that has passed is at once, `None` is never. A clock may ask, to stop there.
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
