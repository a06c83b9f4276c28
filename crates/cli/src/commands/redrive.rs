//! `tickwheel redrive`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tickwheel_api::{BulkRedriveAnswer, JobAction, REDRIVE_MAX, RedriveBody, RedriveOutcome};
use tickwheel_client::blocking::Client;

use super::many::{self, Many};
use crate::cli::Cli;
use crate::filter::{Conditions, DEAD_FILTER, OfDead};
use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// Make dead tasks ready again
///
/// Redriven tasks are ready at once, and their attempts are counted from zero. `tickwheel dead QUEUE` lists dead tasks, and `tickwheel dead
/// QUEUE --groups` their causes of death. The exit code is 1 if one of the named tasks is not dead (`not_found`), or a live task has its key
/// now (`live`), and if `--all` or a filter leaves tasks dead that it found.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel redrive close order:1 order:2
  tickwheel redrive close --id 7
  tickwheel redrive close --failure \"card refused\" --dry-run
  tickwheel redrive close --group-id 9f3a5c0e7b1d2468
  tickwheel redrive close --all")]
pub(crate) struct Redrive {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The keys of the tasks
    #[arg(value_name = "KEY", value_parser = values::key, conflicts_with_all = DEAD_FILTER)]
    keys: Vec<String>,
    /// The id of a task, if another task has had its key since; may be repeated
    #[arg(long = "id", value_name = "ID", conflicts_with = "keys", conflicts_with_all = DEAD_FILTER)]
    ids: Vec<u64>,
    /// All dead tasks, except those whose keys later tasks took; the command says how many these are
    #[arg(long, conflicts_with_all = ["keys", "ids"], conflicts_with_all = DEAD_FILTER)]
    all: bool,
    #[command(flatten)]
    conditions: Conditions,
    #[command(flatten)]
    dead: OfDead,
    /// Redrive no task, and print how many tasks the filter finds
    #[arg(long, conflicts_with_all = ["keys", "ids", "all"])]
    dry_run: bool,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Redrive {
    /// Sends the call and prints the result for each task.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let has_filter = !self.conditions.is_empty() || !self.dead.is_empty();
        if !self.all && self.keys.is_empty() && self.ids.is_empty() && !has_filter {
            let what = "which tasks? give their keys, or ids with --id, or a filter (--failure, --reason, --group-id, --tag, --group, --key-contains, --due-from, --due-to), or --all for every dead task";
            Cli::misused("redrive", format!("{what} of {}", self.queue));
        }
        let client = self.remote.client()?;
        if has_filter {
            return self.many(&client);
        }
        if self.all {
            return self.all_of(&client);
        }
        let mut rows = Vec::new();
        let names: Vec<String> = match self.ids.is_empty() {
            true => self.keys.clone(),
            false => self.ids.iter().map(u64::to_string).collect(),
        };
        for (at, part) in names.chunks(REDRIVE_MAX).enumerate() {
            let ids = self.ids.iter().skip(at * REDRIVE_MAX).take(part.len()).copied();
            let body = match self.ids.is_empty() {
                true => RedriveBody::Keys(part.to_vec()),
                false => RedriveBody::Ids(ids.collect()),
            };
            let answer = client.redrive(&self.queue, &body)?;
            rows.extend(part.iter().cloned().zip(answer.results));
        }
        let failed = rows.iter().any(|(_, result)| *result != RedriveOutcome::Redriven);
        let queue = &self.queue;
        self.format.print(rows.into_iter().map(|(task, result)| Outcome {
            queue: queue.clone(),
            task,
            result,
        }))?;
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// Redrives all dead tasks that the filter finds.
    fn many(self, client: &Client) -> Result<ExitCode> {
        let Self { queue, conditions, dead, dry_run, format, .. } = self;
        let filter = dead.added_to(conditions.wanted());
        let many = |BulkRedriveAnswer { matched, redriven, skipped }| Many {
            queue: queue.clone(),
            action: JobAction::Redrive,
            dry_run,
            matched,
            done: redriven,
            skipped,
        };
        let answered = client.redrive_many(&queue, &filter, dry_run)?.map(many);
        many::finish(client, &format, answered)
    }

    /// Calls the server until no task is left that it can redrive, and says why the others stay dead.
    fn all_of(&self, client: &Client) -> Result<ExitCode> {
        let mut redriven = 0;
        let last = loop {
            let answer = client.redrive(&self.queue, &RedriveBody::All)?;
            redriven += answer.redriven;
            if !answer.more || answer.redriven == 0 {
                break answer;
            }
        };
        say(&format!("{redriven} redriven"));
        let is_full = last.results.contains(&RedriveOutcome::BacklogFull);
        if is_full {
            say("the others stay dead, because the queue has all the tasks it may have (`max_backlog`)");
        }
        let is_drained = last.results.contains(&RedriveOutcome::Draining);
        if is_drained {
            say(&format!(
                "the others stay dead, because the queue is being drained; `tickwheel queues resume {}` ends this",
                self.queue
            ));
        }
        if last.keyless > 0 {
            say(&format!(
                "still dead, because later tasks took their keys: {}; `tickwheel ls {} --state dead -o json` has their ids for --id",
                last.keyless, self.queue
            ));
        }
        Ok(if is_full || is_drained || last.keyless > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

#[derive(Serialize)]
struct Outcome {
    queue: String,
    /// The key or the id, as the caller named it.
    task: String,
    result: RedriveOutcome,
}

impl Row for Outcome {
    const HEADER: &'static [&'static str] = &["QUEUE", "TASK", "RESULT"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let result = match self.result {
            RedriveOutcome::Redriven => "redriven",
            RedriveOutcome::NotFound => "not_found",
            RedriveOutcome::Live => "live",
            RedriveOutcome::Draining => "draining",
            RedriveOutcome::BacklogFull => "backlog_full",
        };
        vec![self.queue.clone(), self.task.clone(), result.to_owned()]
    }
}
