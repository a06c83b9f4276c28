//! `tickwheel put`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tickwheel_api::{PRIORITY_DEFAULT, PutAnswer, PutBody, PutMode, PutQuery, Terms, time};
use tickwheel_client::Stored;

use super::payload::Payload;
use super::retry::TaskRetry;
use super::when::When;
use crate::output::{Format, Row};
use crate::remote::Remote;
use crate::values;

/// Schedule a task
///
/// The key names the task for later changes. A put with the key of a live task replaces that task as a whole: the old time does not fire,
/// and a payload, tags, priority or time without an option gets its default. To change only a part of a task, use `tickwheel patch`; to
/// change only its time, use `tickwheel move`. Without --in, --at, --level and --timeline the task is due now; without a payload, the
/// payload is null.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel put close order:1 --in 30m --payload '{\"order\":1}'
  tickwheel put mail welcome:7 --at 2030-01-01T08:00:00+01:00
  tickwheel put close order:1 --in 1h --mode replace --if-match 41    only if it still is what I saw
  tickwheel put mail digest:7 --level 3 --tag eu --priority 10        after the third delay level, before others
  tickwheel put prices sku:1 --timeline '[{\"at\":\"2030-01-01T00:00:00Z\",\"payload\":9},{\"at\":\"2030-02-01T00:00:00Z\",\"payload\":8}]'
  tickwheel put calls call:1 --max-attempts 5 --backoff fixed --backoff-base 20m
  date | tickwheel put log now --payload-file - --content-type text/plain")]
pub(crate) struct Put {
    /// The queue; the first put makes it
    #[arg(value_parser = values::queue)]
    queue: String,
    /// Your name for the task, unique among the live tasks of its queue
    #[arg(value_parser = values::key)]
    key: String,
    #[command(flatten)]
    when: When,
    #[command(flatten)]
    payload: Payload,
    #[command(flatten)]
    given: Given,
    /// The treatment of a live task with that key
    #[arg(long, value_enum, default_value = "upsert")]
    mode: Mode,
    /// With `--mode debounce`: the longest time from the first of the debounced puts until the task is due
    #[arg(long, value_name = "DURATION", value_parser = values::delay)]
    max_wait: Option<u64>,
    /// Put the task only if the live task has this version
    #[arg(long, value_name = "VERSION", value_parser = values::version)]
    if_match: Option<u64>,
    /// Also replace a leased task, and take it from its worker
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

/// The options for the task's delivery.
#[derive(Args, Debug)]
pub(super) struct Given {
    /// A tag to find the task by; may be repeated
    #[arg(long = "tag", value_name = "TAG", value_parser = values::tag)]
    tags: Vec<String>,
    /// The order among ready tasks: smaller goes first
    #[arg(long, value_name = "N", default_value_t = PRIORITY_DEFAULT)]
    priority: u32,
    /// Tasks of one group share a limit of their queue
    #[arg(long, value_name = "GROUP", value_parser = values::group)]
    group: Option<String>,
    #[command(flatten)]
    retry: TaskRetry,
    /// The time after the put (for a schedule: after the task's instant) at which the task becomes dead, unless it is leased then or done
    #[arg(long, value_name = "DURATION", value_parser = values::delay)]
    expire_after: Option<u64>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Mode {
    /// Replace the live task as a whole, or make a new task
    Upsert,
    /// Refuse the put if there is a live task
    Create,
    /// Refuse the put if there is no live task
    Replace,
    /// As upsert, but the task is due at the latest --max-wait after the first of the debounced puts
    Debounce,
}

impl Given {
    /// The terms in the form of a request.
    ///
    /// # Errors
    /// The retry policy is not valid.
    pub(super) fn terms(self) -> Result<Terms> {
        let Self { tags, priority, group, retry, expire_after } = self;
        Ok(Terms { tags, priority, group, retry: retry.policy()?, expire_after_ms: expire_after })
    }
}

impl Put {
    /// Sends the put and prints the task.
    ///
    /// # Errors
    /// The payload is not valid, there is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let due = self.when.due().unwrap_or_default();
        let timeline = self.when.timeline()?.unwrap_or_default();
        let mode = match self.mode {
            Mode::Upsert => PutMode::Upsert,
            Mode::Create => PutMode::Create,
            Mode::Replace => PutMode::Replace,
            Mode::Debounce => PutMode::Debounce,
        };
        let client = self.remote.client()?;
        let body = PutBody {
            due,
            payload: self.payload.read()?,
            timeline,
            terms: self.given.terms()?,
            max_wait_ms: self.max_wait,
        };
        let query = PutQuery { mode, revoke: self.revoke };
        let stored = client.put(&self.queue, &self.key, &body, query, self.if_match)?;
        self.format.print([stored])?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Row for Stored {
    const HEADER: &'static [&'static str] = &["QUEUE", "KEY", "DUE AT", "STATE", "VERSION", ""];

    fn json(&self) -> Vec<u8> {
        #[derive(Serialize)]
        struct Line<'a> {
            #[serde(flatten)]
            task: &'a PutAnswer,
            created: bool,
            result: &'a str,
        }
        let line = Line { task: &self.task, created: self.created, result: what_became(self.created) };
        serde_json::to_vec(&line).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let task = &self.task;
        vec![
            task.queue.clone(),
            task.key.clone(),
            time::format(task.due_at_ms),
            task.state.name().to_owned(),
            task.version.to_string(),
            what_became(self.created).to_owned(),
        ]
    }
}

/// The word for the result of a put.
fn what_became(created: bool) -> &'static str {
    if created { "created" } else { "replaced" }
}
