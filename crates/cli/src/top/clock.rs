//! The clock of a watch.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use super::events::Event;

/// The time of a watch, and the wait for its events. A test has a clock of its own.
pub(crate) trait Clock: Send + Sync {
    /// The time now.
    fn now(&self) -> Instant;

    /// Waits for the next event, but not beyond the instant `until`.
    ///
    /// # Errors
    /// There was none until then, or every sender has ended.
    fn next(&self, events: &Receiver<Event>, until: Instant) -> Result<Event, RecvTimeoutError>;
}

/// The clock of the system.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn next(&self, events: &Receiver<Event>, until: Instant) -> Result<Event, RecvTimeoutError> {
        events.recv_timeout(until.saturating_duration_since(self.now()))
    }
}
