//! Batches of 1,000 puts: processor time of the server for each task, beside that of a process that embeds the queue, and the rate on the wall.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use tickwheel_queue::{Body, Key, Put, Queue, QueueName};

use super::server::Served;
use crate::cpu;
use crate::sample::Sample;
use crate::web::WebClient;

const BATCH: u64 = 1_000;
const PAYLOAD_BYTES: usize = 200;
/// Batches that are under way at one time.
const CLIENTS: u64 = 4;
/// Every task is due then: nothing of it falls due while it is measured.
const DELAY: Duration = Duration::from_secs(30 * 86_400);

/// One round: the server, then the queue alone.
pub(super) fn both(dir: &Path, span: Duration) -> anyhow::Result<[(&'static str, Sample); 2]> {
    let mut server = served(&dir.join("served"), span)?;
    let program = std::env::current_exe().context("find this program")?;
    let seconds = span.as_secs_f64().to_string();
    let mut command = Command::new(program);
    command.args(["http-part", "embedded"]).arg(dir.join("embedded")).arg(seconds);
    let embedded = Sample::of(&mut command)?.context("the queue alone was not measured")?;
    let cpu =
        |sample: &Sample| sample.figures.iter().find(|(name, _)| name == "cpu_ns_task").map(|(_, ns)| *ns);
    let ratio = cpu(&server).context("a figure")? / cpu(&embedded).context("a figure")?;
    server.figure("cpu_ns_task/embedded", ratio);
    Ok([("server", server), ("embedded", embedded)])
}

fn served(dir: &Path, span: Duration) -> anyhow::Result<Sample> {
    let mut served = Served::start(dir)?;
    let (stop, next, address) = (AtomicBool::new(false), AtomicU64::new(0), served.address);
    let client = || {
        let mut client = WebClient::connect(address)?;
        while !stop.load(Ordering::Relaxed) {
            let lines = lines(next.fetch_add(BATCH, Ordering::Relaxed));
            let answer = client.post("/v1/queues/bench/batch", &lines)?;
            let good = answer.split(|byte| *byte == b'\n').filter(|line| find(line, b"\"status\":201"));
            anyhow::ensure!(good.count() as u64 == BATCH, "not all of a batch was taken");
        }
        anyhow::Ok(())
    };
    let (before, begun) = (served.used()?.all, Instant::now());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        std::thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().expect("a client does not panic"))
    })?;
    let (wall, cpu) = (begun.elapsed(), served.used()?.all - before);
    Ok(figures(next.into_inner(), wall, cpu))
}

fn find(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

fn lines(first: u64) -> Vec<u8> {
    let mut lines = String::new();
    let text = "x".repeat(PAYLOAD_BYTES - 2);
    for n in first..first + BATCH {
        lines +=
            &format!("{{\"op\":\"put\",\"key\":\"order:{n}\",\"delay\":\"30d\",\"payload\":\"{text}\"}}\n");
    }
    lines.into_bytes()
}

/// The queue in this process, with as many batches under way.
pub(super) fn embedded(dir: &Path, span: Duration) -> anyhow::Result<Sample> {
    let queue = Queue::open(dir)?;
    let line = QueueName::new("bench")?;
    let text = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES - 2));
    let (mut next, mut under_way) = (0, std::collections::VecDeque::new());
    let (before, begun) = (cpu::of_process(), Instant::now());
    while begun.elapsed() < span {
        let mut batch = Vec::with_capacity(BATCH as usize);
        for n in next..next + BATCH {
            let body = Body { content_type: "application/json".into(), ..Body::bytes(text.as_bytes()) };
            let put = Put { body, ..Put::new(&line, Key::new(&format!("order:{n}"))?).after(DELAY) };
            batch.push(queue.put(put));
        }
        next += BATCH;
        under_way.push_back(batch);
        if under_way.len() as u64 == CLIENTS {
            for pending in under_way.pop_front().into_iter().flatten() {
                pending.wait()?;
            }
        }
    }
    for pending in under_way.into_iter().flatten() {
        pending.wait()?;
    }
    let (wall, cpu) = (begun.elapsed(), cpu::of_process() - before);
    queue.close();
    Ok(figures(next, wall, cpu))
}

fn figures(tasks: u64, wall: Duration, cpu_nanos: f64) -> Sample {
    let mut sample = Sample { measured: tasks, ..Sample::default() };
    sample.figure("cpu_ns_task", cpu_nanos / tasks as f64);
    sample.figure("tasks_s", tasks as f64 / wall.as_secs_f64());
    sample
}
