//! `tickwheel schedules`.

use std::collections::HashSet;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use tickwheel_api::{
    CadenceBody, CatchUp, LIMIT_MAX, LIST_LIMIT_MAX, OccurrenceBody, Overlap, PreviewQuery, ScheduleBody,
    ScheduleSort, ScheduleSpec, SchedulesQuery, duration, time,
};
use tickwheel_client::blocking::Client;
use tickwheel_queue::cron::Cron;

use super::payload::Payload;
use super::put::Given;
use crate::missing;
use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// Put tasks repeatedly: by cron, at a fixed interval, or a fixed time after the end of the last live task
///
/// At each instant a task with the key NAME@INSTANT is put into the queue; workers lease it like any other.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel schedules put reports nightly --cron '0 2 * * *' --tz America/New_York --payload '{\"report\":\"daily\"}'
  tickwheel schedules put sync stock --every 5m --overlap skip
  tickwheel schedules put sync crawl --fixed-delay 1h
  tickwheel schedules preview reports nightly
  tickwheel schedules ls reports
  tickwheel schedules ls                               those of all queues
  tickwheel schedules ls --sort next --prefix shop/    the soonest first, of the queues whose names begin so
  tickwheel schedules delete reports nightly")]
pub(crate) struct Schedules {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Make or change a schedule; a second put with the same values changes nothing
    Put(Box<Put>),
    /// Show the schedules of a queue, or of all queues
    Ls(Ls),
    /// Show one schedule
    Show(Name),
    /// Show the next instants of a schedule, and what happens when the clocks change
    Preview(Preview),
    /// Delete a schedule; tasks that it has put already stay
    Delete(Delete),
}

#[derive(Args, Debug)]
struct Delete {
    #[command(flatten)]
    name: Name,
    /// Only if the schedule has this version
    #[arg(long, value_name = "VERSION", value_parser = values::version)]
    if_match: Option<u64>,
}

#[derive(Args, Debug)]
struct Ls {
    /// The queue [default: all queues]
    #[arg(value_parser = values::queue)]
    queue: Option<String>,
    /// Only the schedules of queues whose names begin so
    #[arg(long, value_name = "TEXT", conflicts_with = "queue")]
    prefix: Option<String>,
    /// The order: by queue and name, or by the next instant, the soonest first
    #[arg(long, value_enum, value_name = "ORDER", default_value = "name", conflicts_with = "queue")]
    sort: Sort,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Sort {
    Name,
    Next,
}

#[derive(Args, Debug)]
struct Queue {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
}

#[derive(Args, Debug)]
struct Name {
    #[command(flatten)]
    at: Queue,
    /// The name of the schedule
    #[arg(value_parser = values::schedule)]
    name: String,
}

#[derive(Args, Debug)]
struct Preview {
    #[command(flatten)]
    name: Name,
    /// How many instants to show, up to 1000
    #[arg(long, value_name = "N", default_value = "5", value_parser = values::lease_max)]
    count: usize,
}

#[derive(Args, Debug)]
struct Put {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    cadence: Cadence,
    /// The time zone of --cron, an IANA name [default: UTC]
    #[arg(long, value_name = "ZONE", conflicts_with_all = ["every", "fixed_delay"])]
    tz: Option<String>,
    /// No instant before this time
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    start: Option<i64>,
    /// No instant after this time
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    end: Option<i64>,
    /// The schedule ends after this number of tasks
    #[arg(long, value_name = "N", value_parser = |text: &str| values::number(text, 1, LIMIT_MAX))]
    count: Option<u64>,
    /// Each task is due later by a random time up to this one
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::delay)]
    jitter: u64,
    /// The treatment of instants at which no server ran, and none within a minute after them
    #[arg(long, value_enum, default_value = "once")]
    catch_up: Missed,
    /// The treatment of an instant while another task with the name of the schedule is live
    #[arg(long, value_enum, default_value = "allow")]
    overlap: Early,
    #[command(flatten)]
    payload: Payload,
    #[command(flatten)]
    given: Given,
    /// Only if the schedule has this version
    #[arg(long, value_name = "VERSION", value_parser = values::version)]
    if_match: Option<u64>,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Cadence {
    /// A cron expression: five fields (minute hour day month weekday), or six with the seconds first
    #[arg(long, value_name = "CRON")]
    cron: Option<String>,
    /// A fixed interval
    #[arg(long, value_name = "DURATION", value_parser = values::cadence)]
    every: Option<u64>,
    /// The time from the end of the last live task
    #[arg(long, value_name = "DURATION", value_parser = values::cadence)]
    fixed_delay: Option<u64>,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Missed {
    /// These instants are left out
    Skip,
    /// One task for the last of them
    Once,
    /// One task for each of them
    All,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Early {
    /// The instant is left out
    Skip,
    /// The instant waits until no such task is live
    Queue,
    /// The task is put at once
    Allow,
}

impl Schedules {
    /// Runs the subcommand and prints the result.
    ///
    /// # Errors
    /// The expression or the payload is not valid, there is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        match self.verb {
            Verb::Put(put) => {
                let (name, if_match) = ((put.name.at.queue.clone(), put.name.name.clone()), put.if_match);
                let schedule = client.put_schedule(&name.0, &name.1, &put.spec()?, if_match)?;
                self.format.print([schedule])?;
            }
            Verb::Ls(ls) => {
                let all = ls.listed(&client)?;
                match (ls.queue, ls.prefix) {
                    _ if !all.is_empty() => self.format.print(all)?,
                    (Some(queue), _) => {
                        missing::check(&client, &queue)?;
                        say("the queue has no schedule");
                    }
                    (None, None) => say("no queue has a schedule"),
                    (None, Some(prefix)) => {
                        say(&format!("no queue whose name begins with {prefix} has a schedule"));
                    }
                }
            }
            Verb::Show(Name { at: Queue { queue }, name }) => {
                let shown = missing::in_queue(&client, &queue, client.schedule(&queue, &name))?;
                self.format.print([shown])?;
            }
            Verb::Preview(Preview { name: Name { at: Queue { queue }, name }, count }) => {
                let preview = client.preview(&queue, &name, PreviewQuery { count })?;
                if !preview.occurrences.is_empty() {
                    self.format.print(preview.occurrences)?;
                }
                if let Some(note) = preview.note {
                    say(&note);
                }
            }
            Verb::Delete(Delete { name: Name { at: Queue { queue }, name }, if_match }) => {
                client.delete_schedule(&queue, &name, if_match)?;
                say("deleted; the tasks that it has made stay");
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Ls {
    /// All schedules of a queue, or of several queues, page by page.
    fn listed(&self, client: &Client) -> Result<Vec<ScheduleBody>> {
        let (mut all, mut listed) = (Vec::new(), HashSet::new());
        let sort = match self.sort {
            Sort::Name => ScheduleSort::Name,
            Sort::Next => ScheduleSort::Next,
        };
        let usual = SchedulesQuery { limit: LIST_LIMIT_MAX, ..SchedulesQuery::default() };
        let mut query = SchedulesQuery { prefix: self.prefix.clone().unwrap_or_default(), sort, ..usual };
        loop {
            let page = match &self.queue {
                Some(queue) => client.schedules(queue, &query)?,
                None => client.all_schedules(&query)?,
            };
            // A schedule that puts a task between two pages comes again on a later page.
            let is_new = |one: &ScheduleBody| listed.insert((one.queue.clone(), one.name.clone()));
            all.extend(page.schedules.into_iter().filter(is_new));
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                return Ok(all);
            }
        }
    }
}

impl Put {
    fn spec(self) -> Result<ScheduleSpec> {
        let cadence = match self.cadence {
            Cadence { cron: Some(cron), .. } => {
                let tz = self.tz.unwrap_or_else(|| "UTC".to_owned());
                // The server would refuse it with the same words. This check needs no call.
                Cron::parse(&cron, &tz).map_err(|error| anyhow!("{error}; {}", error.hint()))?;
                CadenceBody::Cron { cron, tz }
            }
            Cadence { every: Some(ms), .. } => CadenceBody::Every(ms),
            Cadence { fixed_delay, .. } => {
                CadenceBody::FixedDelay(fixed_delay.expect("the command line takes one of the three"))
            }
        };
        Ok(ScheduleSpec {
            start_ms: self.start,
            end_ms: self.end,
            count: self.count,
            jitter_ms: self.jitter,
            catch_up: match self.catch_up {
                Missed::Skip => CatchUp::Skip,
                Missed::Once => CatchUp::Once,
                Missed::All => CatchUp::All,
            },
            overlap: match self.overlap {
                Early::Skip => Overlap::Skip,
                Early::Queue => Overlap::Queue,
                Early::Allow => Overlap::Allow,
            },
            payload: self.payload.read()?,
            terms: self.given.terms()?,
            ..ScheduleSpec::new(cadence)
        })
    }
}

impl Row for ScheduleBody {
    const HEADER: &'static [&'static str] =
        &["QUEUE", "NAME", "WHEN", "NEXT AT", "LAST AT", "MADE", "SKIPPED"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let when = match &self.spec.cadence {
            CadenceBody::Cron { cron, tz } => format!("{cron} {tz}"),
            CadenceBody::Every(ms) => format!("every {}", duration::format(*ms)),
            CadenceBody::FixedDelay(ms) => format!("{} after the task before", duration::format(*ms)),
        };
        let next = match self.next_at_ms {
            Some(ms) => time::format(ms),
            None if self.fault.is_some() => "unknown".to_owned(),
            None if self.running => "after its task".to_owned(),
            None => "never".to_owned(),
        };
        vec![
            self.queue.clone(),
            self.name.clone(),
            when,
            next,
            self.last_at_ms.map_or("never".to_owned(), time::format),
            self.made.to_string(),
            self.skipped.to_string(),
        ]
    }
}

impl Row for OccurrenceBody {
    const HEADER: &'static [&'static str] = &["AT", "LOCAL", "KEY", "NOTE"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let note = self.note.clone().unwrap_or_default();
        vec![time::format(self.at_ms), self.local.clone(), self.key.clone(), note]
    }
}
