//! `tickwheel-bench store`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use tickwheel_queue::{Key, Put, Queue, QueueName};

use crate::report::Report;
use crate::web::{WebClient, WebServer};
use crate::{raw, rss};

/// Clients that each wait for their put before they make the next.
const CLIENTS: u64 = 64;
/// Puts made at once by the batch client.
const BATCH: u64 = 1_000;
const PAYLOAD_BYTES: usize = 200;
/// A day: none of the tasks is near.
const DELAY: Duration = Duration::from_secs(86_400);

/// What to measure.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tasks: u64,
    pub(crate) rounds: u32,
    pub(crate) span: Duration,
    pub(crate) dir: PathBuf,
}

/// Measures everything, round by round, and then the memory.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Report> {
    std::fs::create_dir_all(&plan.dir).with_context(|| format!("make {}", plan.dir.display()))?;
    let mut report = Report::default();
    for round in 1..=plan.rounds {
        eprintln!("round {round} of {}", plan.rounds);
        measure_round(plan, &mut report)?;
    }
    eprintln!("memory of {} pending tasks", plan.tasks);
    measure_memory(plan, &mut report)?;
    Ok(report)
}

/// The limit before and after ours, so that a disk that changes its mind in between shows.
fn measure_round(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let half = plan.span / 2;
    let raw_16 = |half| raw::overwrite_and_sync(&plan.dir, 16 << 10, half);
    let raw_256 = |half| raw::overwrite_and_sync(&plan.dir, 256 << 10, half);

    let before = raw_16(half)?;
    let singles = single_puts(&plan.dir.join("queue"), plan.span)?;
    let web = web_puts(&plan.dir.join("web"), plan.span)?;
    let limit = (before + raw_16(half)?) / 2.0;
    report.add("disk", "overwrite-sync-16KiB", 1, "ops/s", limit);
    report.add("tickwheel-queue", "durable-put", CLIENTS, "ops/s", singles);
    report.add(
        "tickwheel-queue",
        "durable-put",
        CLIENTS,
        "ratio to clients x disk",
        singles / (CLIENTS as f64 * limit),
    );
    report.add("tickwheel-queue", "durable-put", CLIENTS, "ratio to disk", singles / limit);
    report.add("tickwheel-http", "durable-put", CLIENTS, "ops/s", web);
    report.add(
        "tickwheel-http",
        "durable-put",
        CLIENTS,
        "ratio to clients x disk",
        web / (CLIENTS as f64 * limit),
    );

    let before = raw_256(half)?;
    let batches = batched_puts(&plan.dir.join("batch"), plan.span)?;
    let limit = (before + raw_256(half)?) / 2.0;
    report.add("disk", "overwrite-sync-256KiB", 1, "ops/s", limit);
    report.add("tickwheel-queue", "durable-batch", BATCH, "tasks/s", batches);
    report.add(
        "tickwheel-queue",
        "durable-batch",
        BATCH,
        "ratio to batch x disk",
        batches / (BATCH as f64 * limit),
    );
    Ok(())
}

/// Runs `CLIENTS` threads for `span`; each calls its `op` again and again. Returns calls a second.
fn clients<C, M, O>(span: Duration, make: M, op: O) -> anyhow::Result<f64>
where
    M: Fn(u64) -> anyhow::Result<C> + Sync,
    O: Fn(&mut C, u64) -> anyhow::Result<()> + Sync,
{
    let done = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (done, stop, make, op) = (&done, &stop, &make, &op);
                scope.spawn(move || -> anyhow::Result<()> {
                    let mut state = make(client)?;
                    let mut n = 0;
                    while !stop.load(Ordering::Relaxed) {
                        op(&mut state, n * CLIENTS + client)?;
                        done.fetch_add(1, Ordering::Relaxed);
                        n += 1;
                    }
                    Ok(())
                })
            })
            .collect();
        std::thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().expect("a client does not panic"))
    })?;
    Ok(done.into_inner() as f64 / begun.elapsed().as_secs_f64())
}

fn single_puts(dir: &Path, span: Duration) -> anyhow::Result<f64> {
    let queue = Queue::open(dir)?;
    let line = QueueName::new("bench")?;
    let rate = clients(
        span,
        |_| Ok(()),
        |(), n| {
            let put = Put::new(&line, Key::new(&format!("key:{n}"))?).after(DELAY).payload(payload(n));
            queue.put(put).wait()?;
            Ok(())
        },
    );
    queue.close();
    std::fs::remove_dir_all(dir)?;
    rate
}

fn web_puts(dir: &Path, span: Duration) -> anyhow::Result<f64> {
    let server = WebServer::start(dir)?;
    let address = server.address;
    let rate = clients(
        span,
        |_| WebClient::connect(address),
        |client, n| client.put(&format!("key:{n}"), &format!("\"{}\"", String::from_utf8_lossy(&payload(n)))),
    );
    drop(server);
    std::fs::remove_dir_all(dir)?;
    rate
}

/// One client that makes `BATCH` puts at once and waits for all of them.
fn batched_puts(dir: &Path, span: Duration) -> anyhow::Result<f64> {
    let queue = Queue::open(dir)?;
    let line = QueueName::new("bench")?;
    let begun = Instant::now();
    let mut n = 0;
    while begun.elapsed() < span {
        put_batch(&queue, &line, n)?;
        n += BATCH;
    }
    let rate = n as f64 / begun.elapsed().as_secs_f64();
    queue.close();
    std::fs::remove_dir_all(dir)?;
    Ok(rate)
}

fn put_batch(queue: &Queue, line: &QueueName, from: u64) -> anyhow::Result<()> {
    let mut pending = Vec::with_capacity(BATCH as usize);
    for n in from..from + BATCH {
        pending
            .push(queue.put(Put::new(line, Key::new(&format!("key:{n}"))?).after(DELAY).payload(payload(n))));
    }
    pending.into_iter().try_for_each(|pending| pending.wait().map(drop)).context("put a batch")
}

/// The slope of resident memory between a quarter of the tasks and all of them.
fn measure_memory(plan: &Plan, report: &mut Report) -> anyhow::Result<()> {
    let dir = plan.dir.join("memory");
    let queue = Queue::open(&dir)?;
    let line = QueueName::new("bench")?;
    let (all, quarter) = (plan.tasks.next_multiple_of(BATCH), (plan.tasks / 4).next_multiple_of(BATCH));
    let mut first = 0;
    for n in (0..all).step_by(BATCH as usize) {
        if n == quarter {
            first = rss::resident_bytes()?;
        }
        put_batch(&queue, &line, n)?;
    }
    let last = rss::resident_bytes()?;
    let each = last.saturating_sub(first) as f64 / (all - quarter).max(1) as f64;
    report.add("tickwheel-queue", "pending-200B", all, "resident bytes/task", each);
    queue.close();
    Ok(())
}

/// `PAYLOAD_BYTES` letters that differ from task to task.
fn payload(n: u64) -> Vec<u8> {
    let mut payload = format!("{n:016x}").into_bytes();
    payload.extend((16..PAYLOAD_BYTES as u64).map(|at| b'a' + ((n + at) % 26) as u8));
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_brings_every_figure() {
        let dir = tempfile::tempdir().expect("a place for files");
        let plan =
            Plan { tasks: 4_000, rounds: 1, span: Duration::from_millis(60), dir: dir.path().join("bench") };
        let csv = run(&plan).expect("it runs").csv();
        let rows: Vec<&str> = csv.lines().skip(1).collect();
        assert_eq!(rows.len(), 10, "{csv}");
        for row in rows {
            let median: f64 = row.split(',').nth(4).and_then(|median| median.parse().ok()).expect(row);
            assert!(median > 0.0, "{row}");
        }
    }
}
