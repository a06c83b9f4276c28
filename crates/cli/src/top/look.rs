//! One look at a server.

use std::time::Instant;

use anyhow::Result;
use tickwheel_api::QueueCounts;
use tickwheel_api::client::{Client, ClientError};

use crate::figures::{Figures, Rates};

/// What a server said at one moment.
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) queues: Vec<QueueCounts>,
    /// `Err`: why there are none. A token with a scope does not see them.
    pub(crate) figures: Result<Figures, String>,
}

impl Seen {
    /// Asks the server.
    ///
    /// # Errors
    /// No answer, or one that is none of ours.
    pub(crate) fn look(client: &Client) -> Result<Self> {
        let queues = client.queues()?;
        let at = Instant::now();
        let figures = match client.metrics() {
            Ok(text) => Ok(Figures::read(&text)),
            Err(ClientError::Problem(problem)) if problem.status == 403 => Err(problem.detail),
            Err(error) => return Err(error.into()),
        };
        Ok(Self { at, queues, figures })
    }

    /// What happened between two looks; `None`: one of them saw no figures.
    pub(crate) fn rates_since(&self, before: &Self) -> Option<Rates> {
        match (&before.figures, &self.figures) {
            (Ok(then), Ok(now)) => Some(Rates::between(then, now, self.at - before.at)),
            _ => None,
        }
    }
}
