//! `tickwheel get`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{TaskBody, time};

use crate::missing;
use crate::output::{Format, Row, payload_cell};
use crate::remote::Remote;
use crate::values;

/// Show a task
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel get close order:1
  tickwheel get close order:1 -o json | jq .payload")]
pub(crate) struct Get {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The task's key
    #[arg(value_parser = values::key)]
    key: String,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Get {
    /// Asks for the task and prints it.
    ///
    /// # Errors
    /// There is no server, or there is no such task.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let task = missing::in_queue(&client, &self.queue, client.get(&self.queue, &self.key))?;
        self.format.print([task])?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The state of a task; of a leased one also when the lease ends.
fn state_cell(task: &TaskBody) -> String {
    match task.lease_until_ms {
        Some(until_ms) => format!("{} until {}", task.state.name(), time::format(until_ms)),
        None => task.state.name().to_owned(),
    }
}

impl Row for TaskBody {
    const HEADER: &'static [&'static str] =
        &["QUEUE", "KEY", "DUE AT", "STATE", "ATTEMPT", "VERSION", "PAYLOAD"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.queue.clone(),
            self.key.clone(),
            time::format(self.due_at_ms),
            state_cell(self),
            self.attempt.to_string(),
            self.version.to_string(),
            self.payload.as_ref().map_or(String::new(), payload_cell),
        ]
    }
}
