//! `tickwheel cancel`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tickwheel_api::{BulkCancelAnswer, BulkCancelBody, CancelOutcome, CancelQuery, JobAction, SkippedBody};

use super::many::{self, MANY, Many};
use crate::cli::Cli;
use crate::filter::Filter;
use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// Cancel a task, with a definite answer, or all that a filter finds
///
/// `cancelled`: no delivery of it starts from now on. `leased`: a worker has it, and --revoke takes it away (`revoked`).
/// `done`: a worker has finished it. `not_found`: no such task, or it is long gone. The exit code is 0 for `cancelled` and
/// `revoked`, and 1 for the others.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel cancel close order:1
  tickwheel cancel close order:1 --revoke
  tickwheel cancel close --tag vip --due-to 2030-01-01T00:00:00Z --dry-run
  tickwheel cancel close --all")]
pub(crate) struct Cancel {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The task's key
    #[arg(value_parser = values::key, conflicts_with_all = MANY)]
    key: Option<String>,
    /// Only if the task has this version
    #[arg(long, value_name = "VERSION", value_parser = values::version, conflicts_with_all = MANY)]
    if_match: Option<u64>,
    /// Every task that is not dead, whatever it is
    #[arg(long, conflicts_with_all = ["state", "due_from", "due_to", "tag"])]
    all: bool,
    #[command(flatten)]
    filter: Filter,
    /// Cancel none, and say how many there are
    #[arg(long, conflicts_with = "key")]
    dry_run: bool,
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
        let Some(key) = self.key.clone() else {
            if !self.all && self.filter.is_empty() {
                let what = "which tasks? give a key, or a filter (--tag, --state, --due-from, --due-to), or --all for every task";
                Cli::misused("cancel", format!("{what} of {}", self.queue));
            }
            return self.many();
        };
        let client = self.remote.client()?;
        let query = CancelQuery { revoke: self.revoke };
        let outcome = client.cancel(&self.queue, &key, query, self.if_match)?;
        self.format.print([Outcome { queue: self.queue, key, result: outcome }])?;
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

impl Cancel {
    /// All that the filter finds.
    fn many(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let body =
            BulkCancelBody { filter: self.filter.wanted(), dry_run: self.dry_run, revoke: self.revoke };
        let many = |BulkCancelAnswer { matched, cancelled }| Many {
            queue: self.queue.clone(),
            action: JobAction::Cancel,
            dry_run: self.dry_run,
            matched,
            done: cancelled,
            skipped: SkippedBody::default(),
        };
        let answered = client.cancel_many(&self.queue, &body)?.map(many);
        many::finish(&client, &self.format, answered)
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
