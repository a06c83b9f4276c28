//! Single durable puts: processor time of the server for each, beside bare servers that parse the same JSON.

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

/// One round: ours, the bare server that answers at once, and the bare server that makes each body durable before. Each
/// second round has the other order.
pub(super) fn all(dir: &Path, span: Duration, round: u64) -> anyhow::Result<[(&'static str, Sample); 3]> {
    let served = |which| match which {
        0 => Served::start(&dir.join("puts")),
        1 => Served::start_bare(None),
        _ => Served::start_bare(Some(&dir.join("bare"))),
    };
    let mut samples = <[Sample; 3]>::default();
    for at in 0..3 {
        let which = if round.is_multiple_of(2) { at } else { 2 - at };
        samples[which] = measured(served(which)?, span)?;
    }
    let [mut ours, bare, durable] = samples;
    let us = on_async_threads(&ours)?;
    ours.figure("async_us_put/bare", us / on_async_threads(&bare)?);
    ours.figure("async_us_put/durable", us / on_async_threads(&durable)?);
    Ok([("server", ours), ("bare", bare), ("bare-durable", durable)])
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
