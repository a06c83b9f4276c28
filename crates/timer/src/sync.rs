//! Locks, atomics and threads: from the standard library or, under `--cfg tickwheel_shuttle`, from shuttle, which
//! decides which thread runs next.
//!
//! No lock is held while user code runs, so a panic of user code cannot leave data under a lock half-changed. The poison flag of a lock
//! therefore has no meaning here, and [`lock`] ignores it.

use std::sync::PoisonError;

#[cfg(not(tickwheel_shuttle))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard, atomic},
    thread, thread_local,
};

#[cfg(tickwheel_shuttle)]
pub(crate) use shuttle::{
    sync::{Mutex, MutexGuard, atomic},
    thread, thread_local,
};

/// Takes the lock, even if a thread panicked while it held the lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
