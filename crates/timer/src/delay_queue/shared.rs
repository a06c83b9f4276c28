//! [`Shared`]: the one lock of a delay queue.
//!
//! Ground rules: the lock guards `state`, and a thread reads the clock before it takes the lock. Clocks, wakers and
//! drops of values are the user's code and run without the lock.

use super::called::Called;
use super::state::State;
use crate::sync::{Mutex, lock};
use crate::{Monotonic, Timer};

pub(super) struct Shared<T> {
    state: Mutex<State<T>>,
    pub(super) timer: Timer,
}

impl<T> Shared<T> {
    pub(super) fn new(timer: Timer) -> Self {
        Self { state: Mutex::new(State::new()), timer }
    }

    pub(super) fn now(&self) -> Monotonic {
        self.timer.now()
    }

    /// Runs `with` under the lock, and wakes the called waiters when the lock is free.
    pub(super) fn with<R>(&self, with: impl FnOnce(&mut State<T>, &mut Called) -> R) -> R {
        let mut called = Called::default();
        let result = with(&mut lock(&self.state), &mut called);
        called.deliver();
        result
    }
}
