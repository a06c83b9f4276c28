//! [`Shared`]: the one lock of a delay queue.
//!
//! Ground rules: `state` has the lock, and whoever takes it reads the clock before. A clock, a waker, the drop of a value are
//! other people's code and run without it.

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

    /// Runs `with` under the lock, and wakes whom it called when the lock is free.
    pub(super) fn with<R>(&self, with: impl FnOnce(&mut State<T>, &mut Called) -> R) -> R {
        let mut called = Called::default();
        let result = with(&mut lock(&self.state), &mut called);
        called.deliver();
        result
    }
}
