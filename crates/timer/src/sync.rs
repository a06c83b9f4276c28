//! Locks, atomics and threads, from the standard library or, under `--cfg tickwheel_shuttle`, from shuttle, which decides what
//! runs next.
//!
//! A panic of user code cannot leave our data half-changed, because no lock is held while user code runs. So a poisoned lock says
//! nothing, and [`lock`] takes it as it is.

use std::sync::PoisonError;

#[cfg(not(tickwheel_shuttle))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(tickwheel_shuttle)]
pub(crate) use shuttle::{
    sync::{Mutex, MutexGuard, atomic},
    thread,
};

/// Locks, whether or not a thread panicked while it held the lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
