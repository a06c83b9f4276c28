//! `tickwheel queues`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::QueueCounts;

use crate::output::{Format, Row, say};
use crate::remote::Remote;

/// Show the queues and how many tasks each has
#[derive(Args, Debug)]
pub(crate) struct Queues {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Queues {
    /// Asks for them and prints them.
    ///
    /// # Errors
    /// No server.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let queues = self.remote.client()?.queues()?;
        if queues.is_empty() {
            say("no queue has a task");
        } else {
            self.format.print(queues)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Row for QueueCounts {
    const HEADER: &'static [&'static str] = &["QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", ""];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let counts = [self.scheduled, self.ready, self.leased, self.dead].map(|count| count.to_string());
        let paused = if self.paused { "paused" } else { "" };
        [vec![self.queue.clone()], counts.to_vec(), vec![paused.to_owned()]].concat()
    }
}
