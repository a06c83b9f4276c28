//! `tickwheel cancel`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tickwheel_api::{BulkCancelAnswer, BulkCancelBody, CancelOutcome, JobAction, RevokeQuery};

use super::many::{self, Many};
use super::which::Which;
use crate::cli::Cli;
use crate::filter::OfDead;
use crate::output::{Row, say};

/// Cancel a task, with a definite answer, or all tasks that a filter finds
///
/// The answer is one of: `cancelled`: no delivery of the task starts from now on. `revoked`: --revoke took the task from its worker.
/// `leased`: a worker has the task, and --revoke was not given. `done`: a worker has finished the task. `not_found`: there is no such task,
/// or it ended long ago. The exit code is 0 for `cancelled` and `revoked`, and 1 for the other answers.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel cancel close order:1
  tickwheel cancel close order:1 --revoke
  tickwheel cancel close --tag vip --due-to 2030-01-01T00:00:00Z --dry-run
  tickwheel cancel close --state dead --failure \"card refused\" --dry-run
  tickwheel cancel close --all")]
pub(crate) struct Cancel {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    dead: OfDead,
}

impl Cancel {
    /// Sends the cancel and prints the outcome.
    ///
    /// # Errors
    /// There is no server, or the task has another version.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let key = self.which.key("cancel");
        if !self.dead.is_empty() && !self.which.filter.is_of_dead() {
            let what = "--reason, --failure and --group-id select dead tasks: add --state dead";
            Cli::misused("cancel", what.to_owned());
        }
        let Some(key) = key else { return self.many() };
        let Which { queue, if_match, revoke, remote, format, .. } = self.which;
        let outcome = remote.client()?.cancel(&queue, &key, RevokeQuery { revoke }, if_match)?;
        format.print([Outcome { queue, key, result: outcome }])?;
        let why = match outcome {
            CancelOutcome::Cancelled | CancelOutcome::Revoked => return Ok(ExitCode::SUCCESS),
            CancelOutcome::Leased => "a worker has the task; wait for it, or take it away with --revoke",
            CancelOutcome::Done => "too late: a worker has finished the task",
            CancelOutcome::NotFound => "no live task has this key; both queue and key are case-sensitive",
        };
        say(why);
        Ok(ExitCode::FAILURE)
    }

    /// Cancels all tasks that the filter finds.
    fn many(self) -> Result<ExitCode> {
        let Which { queue, filter, dry_run, revoke, remote, format, .. } = self.which;
        let client = remote.client()?;
        let body = BulkCancelBody { filter: self.dead.added_to(filter.wanted()), dry_run, revoke };
        let many = |BulkCancelAnswer { matched, cancelled, skipped }| Many {
            queue: queue.clone(),
            action: JobAction::Cancel,
            dry_run,
            matched,
            done: cancelled,
            skipped,
        };
        let answered = client.cancel_many(&queue, &body)?.map(many);
        many::finish(&client, &format, answered)
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
