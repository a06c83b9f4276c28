//! A burst: very many tasks that are due in one millisecond, and how long it takes until all of them are ready.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::lateness::{fill_at, now_ms};
use super::server::Served;
use crate::sample::Sample;
use crate::web::WebClient;

/// How long to wait for them.
const PATIENCE: Duration = Duration::from_secs(60);

/// Puts them, waits for their instant, and asks for the counts until all are ready.
pub(super) fn measured(dir: &Path, tasks: u64) -> anyhow::Result<Sample> {
    let served = Served::start(&dir.join("burst"))?;
    // About twice as long as the puts take on a slow machine.
    let due_ms = (now_ms() + 5_000.0 + tasks as f64 / 20.0) as u64;
    fill_at(&served, tasks, due_ms)?;
    ensure!(now_ms() < due_ms as f64, "the puts took until they were due; give fewer");
    std::thread::sleep(Duration::from_secs_f64((due_ms as f64 - now_ms()).max(0.0) / 1e3));
    let (mut client, begun) = (WebClient::connect(served.address)?, Instant::now());
    loop {
        let ready = ready(&mut client)?;
        let late = now_ms() - due_ms as f64;
        if ready == tasks {
            let mut sample = Sample { measured: tasks, ..Sample::default() };
            sample.figure("all_ready_ms", late);
            return Ok(sample);
        }
        ensure!(begun.elapsed() < PATIENCE, "{ready} of {tasks} are ready after {late} ms");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ready(client: &mut WebClient) -> anyhow::Result<u64> {
    let answer = client.get("/v1/queues/burst")?;
    let text = std::str::from_utf8(answer)?;
    let rest = text.split("\"ready\":").nth(1).context("a count of what is ready")?;
    rest.split(',').next().unwrap_or_default().parse().with_context(|| text.to_owned())
}
