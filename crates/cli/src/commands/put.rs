//! `tickwheel put`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::value::RawValue;
use tickwheel_api::client::Stored;
use tickwheel_api::{Due, MomentBody, PRIORITY_DEFAULT, PutAnswer, PutBody, PutMode, PutQuery, Terms, time};

use super::payload::{Payload, text_of};
use super::retry::TaskRetry;
use crate::output::{Format, Row};
use crate::remote::Remote;
use crate::values;

/// Schedule a task
///
/// The key is the handle to find, move or cancel the task by. A put of a live key moves that task: the old time does not fire.
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
    /// The queue; it appears with its first task
    #[arg(value_parser = values::queue)]
    queue: String,
    /// Your name for the task, unique in its queue while it lives
    #[arg(value_parser = values::key)]
    key: String,
    #[command(flatten)]
    when: When,
    #[command(flatten)]
    payload: Payload,
    #[command(flatten)]
    given: Given,
    /// What to do about a live task of that key
    #[arg(long, value_enum, default_value = "upsert")]
    mode: Mode,
    /// Of a debounced put: due so long after the first put of the row at the latest
    #[arg(long, value_name = "DURATION", value_parser = values::delay)]
    max_wait: Option<u64>,
    /// Only if the live task has this version
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

#[derive(Args, Debug)]
#[group(multiple = false)]
struct When {
    /// Due so long from now, such as 250ms, 30m, 1h30m or 15d
    #[arg(long = "in", value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true)]
    delay_ms: Option<u64>,
    /// Due at this time, RFC 3339 or milliseconds since 1970 [without any of these: now]
    #[arg(long = "at", value_name = "TIME", value_parser = values::instant, allow_hyphen_values = true)]
    at_ms: Option<i64>,
    /// Due after the server's delay level N, counted from 1 (see `tickwheel serve --levels`)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    level: Option<u32>,
    /// Due at each of these instants, one after the other, with the payload of each: a list such as
    /// `[{"at": "2030-01-01T00:00:00Z", "payload": {"price": 9}}]`, or @FILE, or @- for stdin
    #[arg(long, value_name = "JSON|@FILE", conflicts_with_all = ["payload", "payload_file", "content_type"])]
    timeline: Option<String>,
}

/// On what terms the task is handed out.
#[derive(Args, Debug)]
pub(super) struct Given {
    /// A word to find the task by; may be given again
    #[arg(long = "tag", value_name = "TAG", value_parser = values::tag)]
    tags: Vec<String>,
    /// Of what is ready, smaller goes first
    #[arg(long, value_name = "N", default_value_t = PRIORITY_DEFAULT)]
    priority: u32,
    /// Tasks of one group share a limit of their queue
    #[arg(long, value_name = "GROUP", value_parser = values::group)]
    group: Option<String>,
    #[command(flatten)]
    retry: TaskRetry,
    /// Dead so long after the put (of a schedule: after the task's instant), unless a worker has the task then or has finished it
    #[arg(long, value_name = "DURATION", value_parser = values::delay)]
    expire_after: Option<u64>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Mode {
    /// Replace it, or make a new one
    Upsert,
    /// Refuse if there is one
    Create,
    /// Refuse if there is none
    Replace,
    /// As upsert, but due --max-wait after the first put of the row at the latest
    Debounce,
}

impl Given {
    /// The terms, as a request says them.
    ///
    /// # Errors
    /// The retry policy makes no sense.
    pub(super) fn terms(self) -> Result<Terms> {
        let Self { tags, priority, group, retry, expire_after } = self;
        Ok(Terms { tags, priority, group, retry: retry.policy()?, expire_after_ms: expire_after })
    }
}

/// The instants of a timeline.
fn timeline(text: String) -> Result<Vec<MomentBody>> {
    let (text, place) = match text.strip_prefix('@') {
        Some(file) => text_of(file)?,
        None => (text.into_bytes(), "--timeline".to_owned()),
    };
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
    let list: &RawValue =
        serde_json::from_slice(text).with_context(|| format!("what {place} gives is no JSON"))?;
    let body = format!(r#"{{"timeline":{list}}}"#);
    match PutBody::parse(body.as_bytes()) {
        Ok(body) => Ok(body.timeline),
        Err(error) => bail!("{place}: {error}; {}", error.hint),
    }
}

impl Put {
    /// Sends it and prints the task.
    ///
    /// # Errors
    /// A bad payload, no server, or a refusal.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let due = match (self.when.delay_ms, self.when.at_ms, self.when.level) {
            (Some(ms), ..) => Due::After(ms),
            (None, Some(ms), _) => Due::At(ms),
            (None, None, Some(level)) => Due::Level(level),
            (None, None, None) => Due::Now,
        };
        let timeline = self.when.timeline.map(timeline).transpose()?.unwrap_or_default();
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
        }
        let line = Line { task: &self.task, created: self.created };
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
            if self.created { "created" } else { "replaced" }.to_owned(),
        ]
    }
}
