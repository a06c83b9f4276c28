//! The state of a server at one moment.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Result;
use tickwheel_api::QueueCounts;
use tickwheel_client::ClientError;
use tickwheel_client::blocking::Client;

use super::clock::Clock;
use crate::figures::{Figures, Rates};

/// The answers of a server at one moment.
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) queues: Vec<QueueCounts>,
    /// `Err`: the reason why there are no figures. A token with a scope may not read them.
    pub(crate) figures: Result<Figures, String>,
}

impl Seen {
    /// Asks the server.
    ///
    /// # Errors
    /// There is no answer, or the answer is not one of a Tickwheel server.
    pub(crate) fn look(client: &Client, clock: &dyn Clock) -> Result<Self> {
        let queues = client.queues()?;
        let at = clock.now();
        let figures = match client.metrics() {
            Ok(text) => Ok(Figures::read(&text)),
            Err(ClientError::Problem(problem)) if problem.status == 403 => Err(problem.detail),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { at, queues, figures })
    }

    /// The rates between two states; `None`: one of them has no figures.
    pub(crate) fn rates_since(&self, before: &Self) -> Option<Rates> {
        match (&before.figures, &self.figures) {
            (Ok(then), Ok(now)) => Some(Rates::between(then, now, self.at - before.at)),
            _ => None,
        }
    }
}

/// A slot for the newest result of a request, until it is taken. The thread that takes results can block on a terminal that takes no
/// output. If results were collected meanwhile, those of an hour would fill the memory. So a new result replaces one that was not
/// taken.
#[derive(Clone, Default)]
pub(crate) struct Newest(Arc<Mutex<Option<Result<Seen>>>>);

impl Newest {
    /// Puts a result into the slot. True if the slot was empty.
    pub(crate) fn put(&self, look: Result<Seen>) -> bool {
        self.replace(Some(look)).is_none()
    }

    /// Takes the result out of the slot.
    pub(crate) fn take(&self) -> Option<Result<Seen>> {
        self.replace(None)
    }

    fn replace(&self, look: Option<Result<Seen>>) -> Option<Result<Seen>> {
        mem::replace(&mut *self.0.lock().expect("no thread panics while it holds the lock"), look)
    }
}
