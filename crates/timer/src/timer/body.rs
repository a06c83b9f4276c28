//! [`Body`]: what an entry does when it is due.

use std::task::Waker;

use crate::Monotonic;
use crate::sync::{Mutex, lock};

/// A task that somebody can run.
pub(crate) type Task = Box<dyn FnOnce() + Send>;

/// What an entry does when it is due. Its methods are called by whom the entry's word gave the
/// right to, so never two at once.
pub(crate) trait Body: Send + Sync {
    /// Runs the user's code, which may panic.
    fn run(&self, deadline: Monotonic, started: Monotonic);

    /// When to run again; `None` if it is over. Asked once after each run, also after a panic.
    fn next(&self, ended: Monotonic) -> Option<Monotonic> {
        let _ = ended;
        None
    }

    /// Whether it may run more than once.
    fn is_periodic(&self) -> bool {
        false
    }

    /// Drops what it would have run.
    fn give_up(&self);

    /// Takes out what it would have run; `None` if there is nothing that a caller could run.
    fn take(&self) -> Option<Task>;

    /// If it only wakes somebody, whom. It does so on the thread that finds it due.
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
        // A lock and an unlock are a third of a cancel, and most tasks have nothing to drop.
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
/// Ground rule: whoever waits leaves its waker first and looks at the word then; whoever finds it
/// due changes the word first and takes the waker then. So one of them sees the other.
pub(crate) struct Waiter(Mutex<Option<Waker>>);

impl Waiter {
    pub(crate) fn new(waker: Waker) -> Self {
        Self(Mutex::new(Some(waker)))
    }

    /// Wakes `waker` instead of the one before.
    pub(crate) fn set(&self, waker: &Waker) {
        if lock(&self.0).as_ref().is_some_and(|known| known.will_wake(waker)) {
            return;
        }
        // Cloning and dropping a waker is somebody else's code, so neither is done under the lock.
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
