//! `tickwheel cancel`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tickwheel_api::{CancelOutcome, CancelQuery};

use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// Cancel a task, with a definite answer
///
/// `cancelled`: no delivery of it starts from now on. `leased`: a worker has it, and --revoke takes it away (`revoked`).
/// `done`: a worker has finished it. `not_found`: no such task, or it is long gone. The exit code is 0 for `cancelled` and
/// `revoked`, and 1 for the others.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel cancel close order:1
  tickwheel cancel close order:1 --revoke")]
pub(crate) struct Cancel {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The task's key
    #[arg(value_parser = values::key)]
    key: String,
    /// Only if the task has this version
    #[arg(long, value_name = "VERSION", value_parser = values::version)]
    if_match: Option<u64>,
    /// Take the task out of a worker's hands if it is leased
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Cancel {
    /// Sends it and prints the outcome.
    ///
    /// # Errors
    /// No server, or another version.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let query = CancelQuery { revoke: self.revoke };
        let outcome = client.cancel(&self.queue, &self.key, query, self.if_match)?;
        self.format.print([Outcome { queue: self.queue, key: self.key, result: outcome }])?;
        let why = match outcome {
            CancelOutcome::Cancelled | CancelOutcome::Revoked => return Ok(ExitCode::SUCCESS),
            CancelOutcome::Leased => "a worker has the task; wait for it, or take it away with --revoke",
            CancelOutcome::Done => "too late: a worker has finished the task",
            CancelOutcome::NotFound => "no live task has this key; both queue and key are case-sensitive",
        };
        say(why);
        Ok(ExitCode::FAILURE)
    }
}

#[derive(Serialize)]
struct Outcome {
    queue: String,
    key: String,
    result: CancelOutcome,
}

impl Row for Outcome {
    const HEADER: &'static [&'static str] = &["QUEUE", "KEY", "RESULT"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an outcome is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![self.queue.clone(), self.key.clone(), self.result.name().to_owned()]
    }
}
