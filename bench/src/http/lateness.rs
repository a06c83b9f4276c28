//! How late tasks reach workers over HTTP: many are pending, and others fall due evenly within ten seconds.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};

use super::control;
use super::server::Served;
use crate::sample::Sample;
use crate::web::WebClient;

const BATCH: u64 = 1_000;
const WORKERS: usize = 4;
/// They fall due within so long.
const SPAN_MS: u64 = 10_000;
/// Between the last put and the first that is due.
const LEAD_MS: u64 = 3_000;
/// How long after the last one is due to wait for those that are missing.
const PATIENCE: Duration = Duration::from_secs(20);

/// How late the tasks were, and how late the control sleep.
pub(super) fn measured(dir: &Path, pending: u64, due: u64) -> anyhow::Result<(Sample, Sample)> {
    let served = Served::start(&dir.join("late"))?;
    fill(&served, pending)?;
    // Their writing is over by the time that counts.
    let first_ms = now_ms() + LEAD_MS as f64 + due as f64 / 20.0;
    put_due(&served, due, first_ms as u64)?;
    ensure!(now_ms() < first_ms, "the puts took until the first was due; give fewer");
    let (taken, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let late = Mutex::new(Vec::with_capacity(due as usize));
    let worker = || {
        let mut client = WebClient::connect(served.address)?;
        let mut mine = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let answer = client.post("/v1/queues/due/lease", br#"{"max":100,"lease":"5m","wait":"1s"}"#)?;
            let now = now_ms();
            let found = dues(answer)?;
            taken.fetch_add(found.len() as u64, Ordering::Relaxed);
            mine.extend(found.into_iter().map(|due_ms| (now - due_ms) * 1e6));
        }
        late.lock().expect("no worker panics").extend(mine);
        anyhow::Ok(())
    };
    let mut slept = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WORKERS).map(|_| scope.spawn(worker)).collect();
        std::thread::sleep(Duration::from_secs_f64((first_ms - now_ms()).max(0.0) / 1e3));
        let control = scope.spawn(|| control::sleep(&stop));
        let begun = Instant::now();
        while taken.load(Ordering::Relaxed) < due
            && begun.elapsed() < Duration::from_millis(SPAN_MS) + PATIENCE
        {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Ordering::Relaxed);
        slept = control.join().expect("a sleeper does not panic");
        threads.into_iter().try_for_each(|thread| thread.join().expect("a worker does not panic"))
    })?;
    let late = late.into_inner().expect("no worker panicked");
    ensure!(late.len() as u64 == due, "{} of {due} tasks came", late.len());
    ensure!(late.iter().all(|nanos| *nanos >= 0.0), "a task came before it was due");
    Ok((figures(late), figures(slept)))
}

/// Percentiles of latenesses, which are nanoseconds.
pub(crate) fn figures(mut late: Vec<f64>) -> Sample {
    late.sort_by(f64::total_cmp);
    let mut sample = Sample { measured: late.len() as u64, ..Sample::default() };
    for (name, part) in [("p50_ms", 0.5), ("p99_ms", 0.99), ("p99.9_ms", 0.999), ("max_ms", 1.0)] {
        let index = ((late.len() as f64 * part).ceil() as usize).clamp(1, late.len()) - 1;
        sample.figure(name, late[index] / 1e6);
    }
    sample
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64() * 1e3
}

/// Tasks that are due in days.
fn fill(served: &Served, pending: u64) -> anyhow::Result<()> {
    fill_by(served, pending, "far", |n| format!("\"delay\":\"{}h\"", 24 + n % 1_000))
}

/// Tasks that are due at one instant.
pub(super) fn fill_at(served: &Served, tasks: u64, due_ms: u64) -> anyhow::Result<()> {
    fill_by(served, tasks, "burst", |_| format!("\"at_ms\":{due_ms}"))
}

fn fill_by(
    served: &Served,
    tasks: u64,
    queue: &str,
    due: impl Fn(u64) -> String + Sync,
) -> anyhow::Result<()> {
    let path = format!("/v1/queues/{queue}/batch");
    let next = AtomicU64::new(0);
    let client = || {
        let mut client = WebClient::connect(served.address)?;
        loop {
            let first = next.fetch_add(BATCH, Ordering::Relaxed);
            if first >= tasks {
                return anyhow::Ok(());
            }
            let lines = (first..(first + BATCH).min(tasks))
                .map(|n| format!("{{\"op\":\"put\",\"key\":\"k:{n}\",{},\"payload\":{n}}}\n", due(n)));
            client.post(&path, lines.collect::<String>().as_bytes())?;
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a client does not panic"))
    })
}

fn put_due(served: &Served, due: u64, first_ms: u64) -> anyhow::Result<()> {
    let mut client = WebClient::connect(served.address)?;
    for first in (0..due).step_by(BATCH as usize) {
        let lines = (first..(first + BATCH).min(due)).map(|n| {
            let at_ms = first_ms + n * SPAN_MS / due;
            format!("{{\"op\":\"put\",\"key\":\"{n}\",\"at_ms\":{at_ms},\"payload\":{at_ms}}}\n")
        });
        client.post("/v1/queues/due/batch", lines.collect::<String>().as_bytes())?;
    }
    Ok(())
}

/// The payloads of leased tasks, which are their instants.
fn dues(answer: &[u8]) -> anyhow::Result<Vec<f64>> {
    let text = std::str::from_utf8(answer)?;
    let found = text.split("\"payload\":").skip(1).map(|rest| {
        let digits = rest.split(',').next().unwrap_or_default();
        digits.parse().with_context(|| format!("the payload is {digits:?}"))
    });
    found.collect()
}
