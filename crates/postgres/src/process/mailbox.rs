//! [`Mailbox`]: hands values from several threads to one that waits for them.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Values in the order in which they came.
#[derive(Debug)]
pub struct Mailbox<T> {
    inside: Mutex<Inside<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inside<T> {
    values: VecDeque<T>,
    closed: bool,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Self {
            inside: Mutex::new(Inside { values: VecDeque::new(), closed: false }),
            changed: Condvar::new(),
        }
    }
}

impl<T> Mailbox<T> {
    /// Adds a value. A closed mailbox drops the value.
    pub fn push(&self, value: T) {
        let mut inside = self.lock();
        if !inside.closed {
            inside.values.push_back(value);
            self.changed.notify_one();
        }
    }

    /// Closes the mailbox. The values in it can still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Whether the mailbox was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.lock().values.is_empty()
    }

    /// Takes out all values, at once.
    pub fn take_all(&self) -> VecDeque<T> {
        std::mem::take(&mut self.lock().values)
    }

    /// Waits for a value for at most this time (`None`: without a limit), and takes out all values. Returns an empty list at the end of the
    /// time, and when the mailbox was closed.
    pub fn wait(&self, limit: Option<Duration>) -> VecDeque<T> {
        let waits = |inside: &mut Inside<T>| inside.values.is_empty() && !inside.closed;
        let mut inside = match limit {
            None => self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let waited = self.changed.wait_timeout_while(self.lock(), limit, waits);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        std::mem::take(&mut inside.values)
    }

    /// Waits for one value. Returns `None` once the mailbox is closed and empty.
    pub fn wait_one(&self) -> Option<T> {
        let waits = |inside: &mut Inside<T>| inside.values.is_empty() && !inside.closed;
        let mut inside = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        inside.values.pop_front()
    }

    /// Waits for at most this time, until the mailbox is closed.
    pub fn wait_for_close(&self, limit: Duration) {
        let _waited = self.changed.wait_timeout_while(self.lock(), limit, |inside| !inside.closed);
    }

    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        // A thread that panicked left no value half written.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
