//! `tickwheel bench`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use serde::Serialize;
use tickwheel_api::{BatchLine, BatchOp, Due, LeaseBody, PayloadBody, PutBody, PutMode, TokenResult};
use tickwheel_client::blocking::Client;

use super::backup::counted;
use super::bench_beanstalk::BenchBeanstalk;
use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// The number of tasks in one batch, one lease call and one ack call: the maximum of one lease call.
const PART: u64 = 1_000;
/// The time from the first put of the lateness part until its first task is due. All puts have to end within this time.
const LEAD: Duration = Duration::from_secs(3);
/// The longest span (ms).
const SPAN_MS_MAX: u64 = 60_000;
/// The longest wait of a worker for a task (ms). It is as long as the longest span.
const WAIT_MS: u64 = 60_000;
/// The limit for the lateness of a task. A longer lateness means that another worker took a task.
const LATE_MAX: Duration = Duration::from_secs(60);

/// Measure how many tasks per second a running server takes and hands out, and how late the tasks come
///
/// Part 1: several clients put tasks in batches that are due at once; then the same number of clients lease and ack them. Part 2: tasks
/// fall due one after the other while one worker waits for them. The lateness of a task is the time from its `due_at` until the worker has
/// it, by the clock of this machine, so run the command on the server's machine. For comparison, the command prints by how much a sleep of
/// this machine is late. At the end all tasks are gone.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
// `bench beanstalk` has its own option for the address, so these options are not global here.
#[command(
    mut_arg("server", |arg| arg.global(false)),
    mut_arg("token_file", |arg| arg.global(false)),
    mut_arg("ca_file", |arg| arg.global(false)),
    mut_arg("retries", |arg| arg.global(false))
)]
#[command(after_help = "\
Examples:
  tickwheel bench
  tickwheel bench --tasks 1000000 --clients 8 -o json
  tickwheel bench --server https://tasks.example:8463 --payload-bytes 1000")]
pub(crate) struct Bench {
    /// How many tasks part 1 puts and works off
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = |text: &str| values::number(text, 1, 100_000_000))]
    tasks: u64,
    /// How many clients put, and then work, in parallel
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = |text: &str| values::number(text, 1, 256))]
    clients: u64,
    /// How many bytes each task carries
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = |text: &str| values::number(text, 0, 50_000))]
    payload_bytes: u64,
    /// How many tasks fall due while a worker waits; 0 leaves part 2 out
    #[arg(long, value_name = "N", default_value_t = 5_000, value_parser = |text: &str| values::number(text, 0, 1_000_000))]
    late_tasks: u64,
    /// The time within which the tasks of part 2 fall due
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::every)]
    span: u64,
    /// The queue for the measurement; it has to be empty
    #[arg(long, default_value = "tickwheel-bench", value_parser = values::queue)]
    queue: String,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
    #[command(subcommand)]
    door: Option<DoorToMeasure>,
}

/// The measurement of a door other than HTTP.
#[derive(Subcommand, Debug)]
enum DoorToMeasure {
    Beanstalk(Box<BenchBeanstalk>),
}

/// One figure.
#[derive(Serialize)]
struct Figure {
    what: &'static str,
    value: f64,
    unit: &'static str,
}

impl Bench {
    /// Measures and prints the figures.
    ///
    /// # Errors
    /// There is no server, it refuses, or another worker works on the queue.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if let Some(DoorToMeasure::Beanstalk(bench)) = self.door {
            return bench.run();
        }
        let client = self.remote.client()?;
        let counts = client.queue(&self.queue)?.counts;
        let there = counts.scheduled + counts.ready + counts.leased + counts.dead;
        if there > 0 {
            bail!("the queue {} has {}; name an empty one with --queue", self.queue, counted(there, "task"));
        }
        if self.span > SPAN_MS_MAX {
            bail!("--span takes up to 1m");
        }
        let figures = self.figures(&client).with_context(|| {
            let queue = &self.queue;
            format!("tasks of the measurement may be left; `tickwheel cancel {queue} --all` takes them away")
        })?;
        self.format.print(figures)?;
        Ok(ExitCode::SUCCESS)
    }

    fn figures(&self, client: &Client) -> Result<Vec<Figure>> {
        let mut figures = Vec::new();
        say(&format!("puts {}", counted(self.tasks, "task")));
        figures.push(self.rate("put", |client, first, count| self.put(client, first, count))?);
        say(&format!("works {} off", counted(self.tasks, "task")));
        figures.push(self.rate("lease and ack", |client, _, count| self.work_off(client, count))?);
        if self.late_tasks > 0 {
            say(&format!("waits for {}", counted(self.late_tasks, "task")));
            let [mut late, mut control] = self.lateness(client)?;
            let names = [["late p50", "late p99", "late max"], ["sleep p50", "sleep p99", "sleep max"]];
            for (of, names) in [&mut late, &mut control].into_iter().zip(names) {
                of.sort_unstable();
                let at = |percent: usize| of[(of.len() - 1) * percent / 100].as_secs_f64() * 1_000.0;
                let of_each = names.into_iter().zip([at(50), at(99), at(100)]);
                figures.extend(of_each.map(|(what, value)| Figure { what, value, unit: "ms" }));
            }
        }
        Ok(figures)
    }

    /// The number of tasks per second that all clients handle together. Each client takes parts, one after the other, until none is left.
    fn rate(
        &self,
        what: &'static str,
        work: impl Fn(&Client, u64, u64) -> Result<()> + Sync,
    ) -> Result<Figure> {
        let next = AtomicU64::new(0);
        let begun = Instant::now();
        thread::scope(|scope| {
            let one = || -> Result<()> {
                let client = self.remote.client()?;
                loop {
                    let first = next.fetch_add(PART, Ordering::Relaxed);
                    if first >= self.tasks {
                        return Ok(());
                    }
                    work(&client, first, PART.min(self.tasks - first))?;
                }
            };
            let clients: Vec<_> = (0..self.clients).map(|_| scope.spawn(one)).collect();
            clients.into_iter().try_for_each(|client| client.join().expect("a client does not panic"))
        })?;
        Ok(Figure { what, value: self.tasks as f64 / begun.elapsed().as_secs_f64(), unit: "tasks/s" })
    }

    fn put(&self, client: &Client, first: u64, count: u64) -> Result<()> {
        self.put_at(client, (first..first + count).map(|number| (number, Due::Now)))
    }

    fn put_at(&self, client: &Client, tasks: impl Iterator<Item = (u64, Due)>) -> Result<()> {
        let text = "x".repeat(usize::try_from(self.payload_bytes).expect("some thousand bytes"));
        let payload = PayloadBody::json(format!("\"{text}\"").into_bytes());
        let line = |(number, due): (u64, Due)| BatchLine {
            key: number.to_string(),
            if_match: None,
            revoke: false,
            op: BatchOp::Put {
                body: PutBody { due, payload: payload.clone(), ..PutBody::default() },
                mode: PutMode::Create,
            },
        };
        let results = client.batch(&self.queue, &tasks.map(line).collect::<Vec<_>>())?;
        match results.into_iter().find_map(|result| result.problem) {
            Some(problem) => bail!("a put was refused: {}", problem.detail),
            None => Ok(()),
        }
    }

    fn work_off(&self, client: &Client, count: u64) -> Result<()> {
        let mut left = usize::try_from(count).expect("no more than a part");
        while left > 0 {
            left -= self.work(client, left)?.1.len();
        }
        Ok(())
    }

    /// Leases and acks at most `max` tasks. Returns the instant at which the tasks came, and the instants at which they were due (ms).
    fn work(&self, client: &Client, max: usize) -> Result<(Duration, Vec<i64>)> {
        let lease = LeaseBody { max, wait_ms: WAIT_MS, ..LeaseBody::default() };
        let tasks = client.lease(&self.queue, &lease)?;
        let now = since_1970()?;
        let queue = &self.queue;
        ensure!(
            !tasks.is_empty(),
            "no task came for a minute; does another worker take tasks of {queue}, or is it paused?"
        );
        let due = tasks.iter().map(|task| task.due_at_ms).collect();
        let results = client.ack(queue, tasks.into_iter().map(|task| task.token).collect())?;
        ensure!(results.iter().all(|result| *result == TokenResult::Acked), "a lease ended before its ack");
        Ok((now, due))
    }

    /// The lateness of each task, and the lateness of sleeps of the same duration.
    fn lateness(&self, client: &Client) -> Result<[Vec<Duration>; 2]> {
        let now_ms = since_1970()?.as_millis();
        let first =
            i64::try_from(now_ms + LEAD.as_millis()).context("the clock of this machine is far off")?;
        let at = |number: u64| {
            let ms = u128::from(self.span) * u128::from(number) / u128::from(self.late_tasks);
            first + i64::try_from(ms).expect("some minutes")
        };
        let numbers: Vec<u64> = (0..self.late_tasks).collect();
        for part in numbers.chunks(PART as usize) {
            self.put_at(client, part.iter().map(|&number| (number, Due::At(at(number)))))?;
        }
        ensure!(
            since_1970()?.as_millis() < u128::try_from(first).expect("after 1970"),
            "the server takes longer than {LEAD:?} for {} puts; name fewer with --late-tasks",
            self.late_tasks
        );
        thread::scope(|scope| {
            let sleeps = scope.spawn(|| -> Vec<Duration> {
                let until = Instant::now() + LEAD + Duration::from_millis(self.span);
                let mut late = Vec::new();
                while Instant::now() < until {
                    let by = Instant::now() + Duration::from_millis(5);
                    thread::sleep(Duration::from_millis(5));
                    late.push(Instant::now().saturating_duration_since(by));
                }
                late
            });
            let mut late = Vec::new();
            while (late.len() as u64) < self.late_tasks {
                let (now, due) = self.work(client, PART as usize)?;
                for due_ms in due {
                    let due = Duration::from_millis(u64::try_from(due_ms).context("due before 1970")?);
                    let by = now.checked_sub(due).filter(|by| *by < LATE_MAX);
                    late.push(by.context(
                        "the clocks of the server and of this machine differ; run it where the server runs",
                    )?);
                }
            }
            Ok([late, sleeps.join().expect("a sleeper does not panic")])
        })
    }
}

fn since_1970() -> Result<Duration> {
    SystemTime::now().duration_since(UNIX_EPOCH).context("the clock of this machine is before 1970")
}

impl Row for Figure {
    const HEADER: &'static [&'static str] = &["WHAT", "VALUE", "UNIT"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a number and two words")
    }

    fn cells(&self) -> Vec<String> {
        let value =
            if self.unit == "ms" { format!("{:.2}", self.value) } else { format!("{:.0}", self.value) };
        vec![self.what.to_owned(), value, self.unit.to_owned()]
    }
}
