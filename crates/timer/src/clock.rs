//! [`Clock`]: the source of readings, and [`Follower`]: who is told when a clock is moved by hand.

use std::sync::{Arc, Weak};

use crate::Monotonic;

/// A clock that never runs backwards.
///
/// A clock is for waiting and for measuring, not for telling the date. Code that waits takes a clock as an argument,
/// so that a test can pass a [`ManualClock`](crate::ManualClock) in place of the [`SystemClock`](crate::SystemClock).
///
/// Readings of different clocks have different origins and must not be compared. Clones of one
/// clock share its origin.
///
/// Most clocks run by themselves, as fast as the system's monotonic clock, and implement `now` alone. A clock that
/// jumps implements [`follow`](Self::follow), too.
pub trait Clock: Send + Sync {
    /// The time since this clock's origin. A later call, on any thread that knows of the earlier
    /// one, never returns less.
    ///
    /// A timer calls this method while it holds a lock of its own. The method must therefore not call a timer, and
    /// must not panic: a panic would end the thread that drives the timer, and nothing would come due any more.
    fn now(&self) -> Monotonic;

    /// Says how this clock moves. A clock that is moved by hand keeps `follower` and calls [`moved`](Follower::moved)
    /// after each step, before the call that moves it returns, and with no lock of its own held. It forgets a
    /// follower that is gone.
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

/// Waits by a clock that is moved by hand.
pub trait Follower: Send + Sync {
    /// The clock has moved. The follower handles everything that has come due, and then returns.
    fn moved(&self);

    /// When the follower has something to do next: a reading that has passed means at once, `None` means never. A
    /// clock may ask this to stop at that instant.
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
