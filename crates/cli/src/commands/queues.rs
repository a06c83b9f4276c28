//! `tickwheel queues`.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::{Map, Value};
use tickwheel_api::{
    LIMIT_MAX, PauseBody, QueueBody, QueueCounts, QueuesQuery, RATE_TASKS_MAX, RateBody, TextError, duration,
    time,
};

use super::retry::QueueRetry;
use crate::missing;
use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values::{self, Setting};

/// Show the queues with the numbers of their tasks, and configure how a queue delivers tasks
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel queues
  tickwheel queues --prefix shop/ --limit 50
  tickwheel queues set exports --max-in-flight 3 --default-lease 10m
  tickwheel queues set mails --rate 100/m --max-attempts 5 --backoff fixed --backoff-base 20m
  tickwheel queues set mails --rate none
  tickwheel queues pause mails --for 10m
  tickwheel queues show mails
  tickwheel queues delete mails                     once it has no tasks and no schedules")]
pub(crate) struct Queues {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Only queues whose name begins with this
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// The most queues to list, up to 1000 [default: all]
    #[arg(long, value_name = "N", value_parser = values::lease_max)]
    limit: Option<usize>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show one queue with its settings
    ///
    /// The exit code is 1 if the queue does not exist.
    Show(Name),
    /// Change settings of a queue; settings without an option stay, and `none` restores the default
    Set(Box<Set>),
    /// Deliver no tasks; leased tasks may be finished, and puts are accepted
    Pause(Pause),
    /// Accept no new tasks; existing tasks are delivered
    Drain(Name),
    /// End a pause and a drain
    Resume(Name),
    /// Remove a queue that has no tasks and no schedules, with its settings
    Delete(Name),
}

#[derive(Args, Debug)]
struct Name {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
}

#[derive(Args, Debug)]
struct Pause {
    #[command(flatten)]
    name: Name,
    /// The pause ends by itself after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = values::pause, allow_hyphen_values = true)]
    for_ms: Option<u64>,
}

#[derive(Args, Debug)]
struct Set {
    #[command(flatten)]
    name: Name,
    /// The largest number of leased tasks at one time
    #[arg(long, value_name = "N", value_parser = limit)]
    max_in_flight: Option<Setting<u64>>,
    /// The largest number of leased tasks of one group at one time
    #[arg(long, value_name = "N", value_parser = limit)]
    max_in_flight_per_group: Option<Setting<u64>>,
    /// How many deliveries may begin in a period: 5/s, 100/m, 1/250ms
    #[arg(long, value_parser = rate)]
    rate: Option<Setting<RateBody>>,
    /// The largest number of deliveries that may begin at once after a quiet time. A new rate keeps a burst of 1, and one that is not the number in
    /// the old rate [default: the number in the rate]
    #[arg(long, value_name = "N", value_parser = burst)]
    burst: Option<Setting<u64>>,
    /// Refuse puts if the queue has this number of tasks
    #[arg(long, value_name = "N", value_parser = limit)]
    max_backlog: Option<Setting<u64>>,
    /// The duration of leases of workers that name none
    #[arg(long = "default-lease", alias = "lease", value_name = "DURATION", value_parser = |text: &str| values::setting(text, values::lease), allow_hyphen_values = true)]
    default_lease_ms: Option<Setting<u64>>,
    #[command(flatten)]
    retry: QueueRetry,
    /// How many ended tasks are remembered
    #[arg(long, value_name = "N", value_parser = history_keys)]
    history_keys: Option<Setting<u64>>,
    /// How long ended tasks are remembered
    #[arg(long = "history-keep", value_name = "DURATION", value_parser = |text: &str| values::setting(text, values::history), allow_hyphen_values = true)]
    history_keep_ms: Option<Setting<u64>>,
}

fn limit(text: &str) -> Result<Setting<u64>, String> {
    values::setting(text, |text| values::number(text, 1, LIMIT_MAX))
}

fn rate(text: &str) -> Result<Setting<RateBody>, String> {
    values::setting(text, |text| text.parse().map_err(|error: TextError| error.in_full()))
}

fn burst(text: &str) -> Result<Setting<u64>, String> {
    values::setting(text, |text| values::number(text, 1, RATE_TASKS_MAX))
}

fn history_keys(text: &str) -> Result<Setting<u64>, String> {
    values::setting(text, |text| values::number(text, 0, tickwheel_api::HISTORY_KEYS_MAX))
}

impl Queues {
    /// Asks for queues and prints them, or changes one and prints it.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        ensure!(
            self.verb.is_none() || self.prefix.is_none() && self.limit.is_none(),
            "--prefix and --limit are for the list of queues; leave them out of a command on one queue"
        );
        let one = match &self.verb {
            None => {
                let prefix = self.prefix.unwrap_or_default();
                let query = QueuesQuery { prefix: prefix.clone(), limit: self.limit, cursor: None };
                let page = client.list_queues(&query)?;
                match page.queues.is_empty() {
                    true if prefix.is_empty() => {
                        say("no queue has a task or settings, or had some within the last hour")
                    }
                    true => say(&format!(
                        "no queue whose name begins with {prefix} has a task or settings, or had some within the last hour"
                    )),
                    false => self.format.print(page.queues)?,
                }
                if page.next_cursor.is_some() {
                    say("there are more queues; name another --limit, or a --prefix");
                }
                return Ok(ExitCode::SUCCESS);
            }
            Some(Verb::Show(Name { queue })) => {
                let shown = client.queue(queue)?;
                ensure!(shown.exists, missing::told(&client, queue));
                shown
            }
            Some(Verb::Set(set)) => client.reconfigure(&set.name.queue, set.patch())?,
            Some(Verb::Pause(pause)) => {
                client.pause(&pause.name.queue, &PauseBody { for_ms: pause.for_ms })?
            }
            Some(Verb::Drain(name)) => client.drain(&name.queue)?,
            Some(Verb::Resume(name)) => client.resume(&name.queue)?,
            Some(Verb::Delete(Name { queue })) => {
                client.delete_queue(queue)?;
                self.format.print([Deleted { queue: queue.clone(), result: "deleted" }])?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        self.format.print([one])?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Set {
    /// A patch that has only the settings with an option: other callers may change the other settings meanwhile.
    fn patch(&self) -> Vec<u8> {
        let mut patch = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            patch.extend(value.map(|value| (name.to_owned(), value)));
        };
        let number =
            |named: Option<Setting<u64>>| named.map(|to| to.value().map_or(Value::Null, Value::from));
        put("max_in_flight", number(self.max_in_flight));
        put("max_in_flight_per_group", number(self.max_in_flight_per_group));
        let text = |rate: RateBody| Value::from(rate.to_string());
        put("rate", self.rate.map(|to| to.value().map_or(Value::Null, text)));
        put("burst", number(self.burst));
        put("max_backlog", number(self.max_backlog));
        let lease = |ms| Value::from(duration::format(ms));
        put("default_lease", self.default_lease_ms.map(|to| to.value().map_or(Value::Null, lease)));
        put("retry", self.retry.patch());
        let mut history = Map::new();
        history.extend(number(self.history_keys).map(|keys| ("keys".to_owned(), keys)));
        let keep = self.history_keep_ms.map(|to| to.value().map_or(Value::Null, lease));
        history.extend(keep.map(|keep| ("keep".to_owned(), keep)));
        put("history", (!history.is_empty()).then_some(Value::Object(history)));
        serde_json::to_vec(&patch).expect("plain JSON")
    }
}

#[derive(Serialize)]
struct Deleted {
    queue: String,
    result: &'static str,
}

impl Row for Deleted {
    const HEADER: &'static [&'static str] = &["QUEUE", "RESULT"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        vec![self.queue.clone(), self.result.to_owned()]
    }
}

impl Row for QueueCounts {
    const HEADER: &'static [&'static str] = &["QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "HELD"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let counts = [self.scheduled, self.ready, self.leased, self.dead].map(|count| count.to_string());
        [vec![self.queue.clone()], counts.to_vec(), vec![held(self).join(", ")]].concat()
    }
}

/// The reasons why the queue delivers or accepts no tasks now: pause, drain.
fn held(counts: &QueueCounts) -> Vec<&'static str> {
    let ways = [("paused", counts.paused), ("draining", counts.draining)];
    ways.into_iter().filter(|(_, so)| *so).map(|(way, _)| way).collect()
}

impl Row for QueueBody {
    const HEADER: &'static [&'static str] =
        &["QUEUE", "SCHEDULED", "READY", "LEASED", "DEAD", "HELD", "SETTINGS"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let mut cells = self.counts.cells();
        if let Some(until) = self.paused_until_ms {
            *cells.last_mut().expect("it has cells") += &format!(" until {}", time::format(until));
        }
        let settings = String::from_utf8(self.settings.to_json()).expect("JSON is UTF-8");
        cells.push(if settings == "{}" { "defaults".to_owned() } else { settings });
        cells
    }
}
