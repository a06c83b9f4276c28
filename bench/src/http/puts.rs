//! Single durable puts: processor time of the server for each, beside a bare server that parses the same JSON.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;

use super::server::Served;
use crate::sample::Sample;
use crate::web::WebClient;

/// Puts that are under way at one time, on a connection each.
const CLIENTS: usize = 16;
const PAYLOAD_BYTES: usize = 200;

/// One round: ours, then the bare server; each second round in the other order.
pub(super) fn both(dir: &Path, span: Duration, round: u64) -> anyhow::Result<[(&'static str, Sample); 2]> {
    let ours = || measured(Served::start(&dir.join("puts"))?, span);
    let bare = || measured(Served::start_bare()?, span);
    let (mut ours, bare) = if round.is_multiple_of(2) {
        (ours()?, bare()?)
    } else {
        let bare = bare()?;
        (ours()?, bare)
    };
    ours.figure("async_us_put/bare", on_async_threads(&ours)? / on_async_threads(&bare)?);
    Ok([("server", ours), ("bare", bare)])
}

fn on_async_threads(sample: &Sample) -> anyhow::Result<f64> {
    let figure = sample.figures.iter().find(|(name, _)| name == "async_us_put");
    figure.map(|(_, us)| *us).context("a figure")
}

fn measured(mut served: Served, span: Duration) -> anyhow::Result<Sample> {
    let (stop, next, address) = (AtomicBool::new(false), AtomicU64::new(0), served.address);
    let payload = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES - 2));
    let client = || {
        let mut client = WebClient::connect(address)?;
        while !stop.load(Ordering::Relaxed) {
            client.put(&format!("order:{}", next.fetch_add(1, Ordering::Relaxed)), &payload)?;
        }
        anyhow::Ok(())
    };
    let (before, begun) = (served.used()?, Instant::now());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        std::thread::sleep(span);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().expect("a client does not panic"))
    })?;
    let (wall, after, puts) = (begun.elapsed(), served.used()?, next.into_inner());
    let us_each = |nanos: f64| nanos / 1e3 / puts as f64;
    let mut sample = Sample { measured: puts, ..Sample::default() };
    sample.figure("async_us_put", us_each(after.on_async_threads - before.on_async_threads));
    sample.figure("cpu_us_put", us_each(after.all - before.all));
    sample.figure("puts_s", puts as f64 / wall.as_secs_f64());
    Ok(sample)
}
