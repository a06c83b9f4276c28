//! Connections that are closed when nothing was heard for a while.
//!
//! Each connection has one timeout for its whole life, and every piece of traffic puts it off. To put it off is one
//! compare-and-set in the handle, so it may be done for each packet: the timer's driver notices once, when it looks at the old
//! deadline.
//!
//! Ground rules:
//! - The handle decides: either the timeout runs, or `close` was told yes.
//! - `open` only finds handles. It is locked for moments, and never while anything is scheduled, moved or closed.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tickwheel::{Refusal, Timeout, TimeoutState, Timer};

/// Closes idle connections. Clones are the same one.
#[derive(Clone)]
pub struct Connections {
    inner: Arc<Inner>,
}

struct Inner {
    timer: Timer,
    idle: Duration,
    on_idle: Box<dyn Fn(u32) + Send + Sync>,
    open: Mutex<HashMap<u32, Timeout>>,
}

impl Connections {
    /// `on_idle` is called for each connection that was silent for `idle`.
    pub fn new(timer: &Timer, idle: Duration, on_idle: impl Fn(u32) + Send + Sync + 'static) -> Self {
        let inner = Inner { timer: timer.clone(), idle, on_idle: Box::new(on_idle), open: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// A new connection. Its number has not been given to another one before.
    ///
    /// # Errors
    /// If the timer cannot watch over it: then it must not be used.
    pub fn open(&self, number: u32) -> Result<(), Refusal> {
        let inner = Arc::downgrade(&self.inner);
        let close = move || {
            if let Some(inner) = inner.upgrade() {
                inner.close_idle(number);
            }
        };
        let timeout = self.inner.timer.schedule(self.inner.idle, close).map_err(|refused| refused.why)?;
        self.inner.lock().insert(number, timeout.clone());
        if timeout.state() != TimeoutState::Pending {
            // The time was up before the handle could be found, and there was nothing to take out then.
            self.inner.lock().remove(&number);
        }
        Ok(())
    }

    /// Something was heard on a connection. False if it is closed: the caller has to drop it.
    #[must_use = "a connection that was closed meanwhile must not be used"]
    pub fn heard(&self, number: u32) -> bool {
        let timeout = self.inner.lock().get(&number).cloned();
        // False from `reschedule`: the connection is being closed at this moment.
        timeout.is_some_and(|timeout| timeout.reschedule(self.inner.idle))
    }

    /// Closes a connection. False if it was idle for too long, or closed before.
    pub fn close(&self, number: u32) -> bool {
        let timeout = self.inner.lock().remove(&number);
        timeout.is_some_and(|timeout| timeout.cancel())
    }

    /// How many connections are open.
    #[must_use]
    pub fn count(&self) -> usize {
        self.inner.lock().len()
    }
}

impl Inner {
    fn close_idle(&self, number: u32) {
        self.lock().remove(&number);
        (self.on_idle)(number);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Timeout>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("count", &self.count()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use tickwheel::{Job, ManualClock};

    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn world() -> (ManualClock, Timer, Connections, Receiver<u32>) {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock.clone()).executor(Job::run).build().expect("a timer");
        let (closed, idle) = channel();
        let connections =
            Connections::new(&timer, s(60), move |number| closed.send(number).expect("the test listens"));
        (clock, timer, connections, idle)
    }

    #[test]
    fn silence_closes_a_connection_and_only_that_one() {
        let (clock, _timer, connections, idle) = world();
        connections.open(1).expect("there is room");
        connections.open(2).expect("there is room");
        clock.advance(s(59));
        assert!(connections.heard(2));
        clock.advance(s(1));
        assert_eq!(idle.try_iter().collect::<Vec<_>>(), [1]);
        assert_eq!(connections.count(), 1);
        clock.advance(s(58));
        assert_eq!(idle.try_iter().count(), 0, "2 was heard 59 s ago");
        clock.advance(s(1));
        assert_eq!(idle.try_iter().collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn traffic_keeps_a_connection_open_for_days_with_one_entry() {
        let (clock, timer, connections, idle) = world();
        connections.open(1).expect("there is room");
        for _ in 0..10_000 {
            clock.advance(s(59));
            assert!(connections.heard(1));
        }
        assert_eq!(idle.try_iter().count(), 0);
        let metrics = timer.metrics();
        assert_eq!((metrics.accepted, metrics.fired, metrics.pending), (1, 0, 1));
        clock.advance(s(60));
        assert_eq!(idle.try_iter().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_closed_connection_is_told_from_an_open_one() {
        let (clock, timer, connections, idle) = world();
        for number in 1..=2 {
            connections.open(number).expect("there is room");
        }
        assert!(connections.close(1));
        assert!(!connections.close(1));
        assert!(!connections.heard(1));
        clock.advance(s(60));
        assert!(!connections.heard(2));
        assert!(!connections.close(2));
        assert_eq!(idle.try_iter().collect::<Vec<_>>(), [2]);
        assert_eq!((connections.count(), timer.pending()), (0, 0));
        assert!(!connections.heard(3), "never opened");
    }

    #[test]
    fn a_connection_that_is_idle_from_the_start_leaves_nothing() {
        let clock = ManualClock::new();
        let timer = Timer::builder().clock(clock).executor(Job::run).build().expect("a timer");
        let (closed, idle) = channel();
        let connections =
            Connections::new(&timer, s(0), move |number| closed.send(number).expect("the test listens"));
        connections.open(1).expect("there is room");
        assert_eq!(idle.try_iter().collect::<Vec<_>>(), [1]);
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn a_connection_that_nobody_watches_is_refused() {
        let (_clock, timer, connections, _idle) = world();
        drop(timer.shutdown());
        assert_eq!(connections.open(1), Err(Refusal::ShutDown));
        assert_eq!(connections.count(), 0);
    }
}
