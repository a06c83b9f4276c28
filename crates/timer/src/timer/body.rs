//! [`Body`]: the action of an entry when it is due.

use std::task::Waker;

use crate::Monotonic;
use crate::sync::{Mutex, lock};

/// A task that a caller can run.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// The action of an entry when it is due. Only the thread that got the right from the entry's state word calls the methods, so two calls
/// never overlap.
pub(crate) trait Body: Send + Sync {
    /// Runs the user's code, which may panic.
    fn run(&self, deadline: Monotonic, started: Monotonic);

    /// The deadline of the next run; `None` if there is no further run. Called once after each run, also after a panic.
    fn next(&self, ended: Monotonic) -> Option<Monotonic> {
        let _ = ended;
        None
    }

    /// Whether the body may run more than once.
    fn is_periodic(&self) -> bool {
        false
    }

    /// Whether the next run is the first one of a task that began at once. Such a run does not wait for the next tick.
    fn begins_at_once(&self) -> bool {
        false
    }

    /// Drops the task without running it.
    fn give_up(&self);

    /// Takes the task out; `None` if there is no task that a caller could run.
    fn take(&self) -> Option<Task>;

    /// The waiter, if the body only wakes a future. The thread that finds the entry due wakes the future.
    fn waiter(&self) -> Option<&Waiter> {
        None
    }
}

/// Runs once.
pub(crate) struct OneShot<F>(Mutex<Option<F>>);

impl<F> OneShot<F> {
    pub(crate) fn new(task: F) -> Self {
        Self(Mutex::new(Some(task)))
    }

    pub(crate) fn into_task(self) -> F {
        let task = lock(&self.0).take();
        task.expect("an entry that was refused has not run")
    }

    fn take_task(&self) -> Option<F> {
        lock(&self.0).take()
    }
}

impl<F: FnOnce() + Send + 'static> Body for OneShot<F> {
    fn run(&self, _deadline: Monotonic, _started: Monotonic) {
        if let Some(task) = self.take_task() {
            task();
        }
    }

    fn give_up(&self) {
        // Locking and unlocking are a third of the cost of a cancel, and most tasks have nothing to drop.
        if std::mem::needs_drop::<F>() {
            drop(self.take_task());
        }
    }

    fn take(&self) -> Option<Task> {
        self.take_task().map(|task| Box::new(task) as Task)
    }
}

/// Wakes a future.
///
/// Ground rule: the future stores its waker first and then reads the state word. The thread that finds the entry due changes the word first
/// and then takes the waker. So the future sees the change, or the thread sees the waker.
pub(crate) struct Waiter(Mutex<Option<Waker>>);

impl Waiter {
    pub(crate) fn new(waker: Waker) -> Self {
        Self(Mutex::new(Some(waker)))
    }

    /// Replaces the waker by a clone of `waker`.
    pub(crate) fn set(&self, waker: &Waker) {
        if lock(&self.0).as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        // Cloning and dropping a waker runs user code, so neither is done under the lock.
        let new = waker.clone();
        let before = lock(&self.0).replace(new);
        drop(before);
    }

    pub(crate) fn take_waker(&self) -> Option<Waker> {
        lock(&self.0).take()
    }
}

impl Body for Waiter {
    fn run(&self, _deadline: Monotonic, _started: Monotonic) {
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    fn give_up(&self) {
        drop(self.take_waker());
    }

    fn take(&self) -> Option<Task> {
        None
    }

    fn waiter(&self) -> Option<&Waiter> {
        Some(self)
    }
}
