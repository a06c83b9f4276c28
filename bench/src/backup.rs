//! Durable puts beside a backup: how much later the slow ones are answered while the directory is copied, in rounds that alternate with quiet
//! ones.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use tickwheel_queue::backup::{BackupPhase, BackupWatch};
use tickwheel_queue::{Key, Put, Queue, QueueName};

use crate::report::Report;
use crate::scratch::Scratch;

/// The options of this measurement.
#[derive(clap::Args, Debug)]
pub(crate) struct BackupArguments {
    /// Where the data and the copies go, on the disk that is measured.
    #[arg(long, value_name = "DIR", default_value = "target")]
    dir: PathBuf,
    /// Rounds with a copy; each has a quiet one before it.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Far tasks in the directory, of 1 KB each.
    #[arg(long, default_value_t = 200_000)]
    tasks: u64,
    /// Clients that put, each one task after the other.
    #[arg(long, default_value_t = 4)]
    clients: u64,
    /// Seconds of a quiet round. A round with a copy lasts as long as the copy, and at most four times this.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Copy as fast as it goes, as `Queue::backup` does, to see what the rests are for.
    #[arg(long)]
    quick: bool,
}

/// A year ahead: nothing falls due.
const FAR: Duration = Duration::from_secs(365 * 86_400);
const PAYLOAD_BYTES: usize = 1_000;
/// Puts that wait together while the directory is filled.
const FILL_AT_ONCE: u64 = 1_000;

/// Puts of one round, each from its call to its answer.
struct Round {
    micros: Vec<u64>,
    seconds: f64,
}

impl Round {
    fn quantile(&mut self, of_1000: usize) -> f64 {
        self.micros.sort_unstable();
        let at = (self.micros.len() * of_1000 / 1_000).min(self.micros.len().saturating_sub(1));
        self.micros.get(at).copied().unwrap_or_default() as f64
    }
}

/// Runs the rounds.
pub(crate) fn run(arguments: &BackupArguments) -> anyhow::Result<Report> {
    let scratch = Scratch::new(&arguments.dir, "bench-backup")?;
    let (data, copy) = (scratch.path().join("data"), scratch.path().join("copy"));
    let queue = Queue::open(&data).context("open a queue")?;
    fill(&queue, arguments.tasks)?;
    let mut report = Report::default();
    let mut add =
        |kind: &str, metric: &str, figure| report.add("tickwheel", kind, arguments.tasks, metric, figure);
    for number in 0..arguments.rounds {
        let mut quiet = round(&queue, arguments.clients, &format!("{number}-quiet"), || {
            thread::sleep(Duration::from_secs(arguments.seconds));
            Ok(0)
        })?;
        let longest = Duration::from_secs(4 * arguments.seconds);
        let mut busy = round(&queue, arguments.clients, &format!("{number}-copy"), || {
            if arguments.quick {
                return Ok(queue.backup(&copy)?.bytes);
            }
            copied(&queue, &copy, longest)
        })?;
        if copy.exists() {
            std::fs::remove_dir_all(&copy).context("remove a copy")?;
        }
        let (quiet_p99, busy_p99) = (quiet.0.quantile(990), busy.0.quantile(990));
        add("copy-to-quiet", "p99_ratio", busy_p99 / quiet_p99);
        eprintln!(
            "round {number}: p99 {quiet_p99} us quiet, {busy_p99} us beside a copy: {:.2}",
            busy_p99 / quiet_p99
        );
        for (kind, (round, bytes)) in [("quiet", &mut quiet), ("copy", &mut busy)] {
            add(kind, "puts_s", round.micros.len() as f64 / round.seconds);
            for (metric, of_1000) in [("p50_us", 500), ("p99_us", 990), ("p999_us", 999)] {
                add(kind, metric, round.quantile(of_1000));
            }
            add(kind, "copied_mb_s", *bytes as f64 / 1e6 / round.seconds);
        }
    }
    Ok(report)
}

fn fill(queue: &Queue, tasks: u64) -> anyhow::Result<()> {
    for part in (0..tasks).step_by(usize::try_from(FILL_AT_ONCE)?) {
        let puts: Vec<_> = (part..tasks.min(part + FILL_AT_ONCE))
            .map(|n| put(queue, &format!("fill-{n}")))
            .collect::<Result<_, _>>()?;
        for put in puts {
            put.wait()?;
        }
    }
    Ok(())
}

fn put(
    queue: &Queue,
    key: &str,
) -> anyhow::Result<tickwheel_queue::Pending<tickwheel_queue::Stored, tickwheel_queue::PutError>> {
    let put =
        Put::new(&QueueName::new("bench")?, Key::new(key)?).after(FAR).payload(vec![b'x'; PAYLOAD_BYTES]);
    Ok(queue.put(put))
}

/// The latencies of puts while `work` is done, and what it gave.
fn round(
    queue: &Queue,
    clients: u64,
    name: &str,
    work: impl FnOnce() -> anyhow::Result<u64>,
) -> anyhow::Result<(Round, u64)> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..clients)
            .map(|client| {
                let ended = &ended;
                scope.spawn(move || -> anyhow::Result<Vec<u64>> {
                    let mut micros = Vec::new();
                    for n in 0.. {
                        if ended.load(Ordering::Relaxed) {
                            break;
                        }
                        let begun = Instant::now();
                        put(queue, &format!("{name}-{client}-{n}"))?.wait()?;
                        micros.push(u64::try_from(begun.elapsed().as_micros())?);
                    }
                    Ok(micros)
                })
            })
            .collect();
        let begun = Instant::now();
        let done = work();
        let seconds = begun.elapsed().as_secs_f64();
        ended.store(true, Ordering::Relaxed);
        let mut micros = Vec::new();
        for client in clients {
            micros.extend(client.join().expect("a client does not panic")?);
        }
        Ok((Round { micros, seconds }, done?))
    })
}

/// A gentle copy, or as much of one as the time allows. The check of it is measured with it.
fn copied(queue: &Queue, to: &std::path::Path, longest: Duration) -> anyhow::Result<u64> {
    let watch = BackupWatch::new();
    let begun = Instant::now();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if begun.elapsed() > longest {
                    watch.stop();
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
        let made = queue.backup_gently(to, &watch);
        ended.store(true, Ordering::Relaxed);
        let progress = watch.progress();
        let seconds = begun.elapsed().as_secs_f64();
        let checking = progress.phase == BackupPhase::Checking;
        eprintln!("  {} bytes copied in {seconds:.1} s with the check (begun: {checking})", progress.copied);
        match made {
            Ok(report) => Ok(report.bytes),
            Err(tickwheel_queue::BackupError::Stopped) => Ok(progress.copied),
            Err(error) => Err(error.into()),
        }
    })
}
