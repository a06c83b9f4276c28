//! What timers cost while they wait: a million of them, an hour away.

use std::time::{Duration, Instant};

use super::scale::Scale;
use super::subject::{Producer, Service};
use super::usage::{self, Usage};
use crate::random::Random;
use crate::rss;
use crate::sample::Sample;

const HOUR: Duration = Duration::from_secs(3_600);
/// Due instants are spread over the minute that follows.
const SPREAD_US: u64 = 60_000_000;

/// Schedules them all, waits until that is digested, and looks at the timer's own threads for some seconds.
///
/// # Errors
/// Where the system does not tell what threads use.
pub(crate) fn sample<S: Service>(scale: &Scale) -> anyhow::Result<Sample> {
    let service = S::start(None);
    let mut producer = service.producer(0);
    let mut random = Random::new(9);
    let mut claims = Vec::with_capacity(scale.pending as usize);
    let (before, cpu) = (rss::resident_bytes()?, usage::process_nanos());
    for _ in 0..scale.pending {
        claims.push(producer.schedule(HOUR + Duration::from_micros(random.below(SPREAD_US))));
    }
    usage::wait_for_rest(scale.patience)?;
    std::thread::sleep(scale.quiet);
    let (bytes, cpu) = (rss::resident_bytes()?.saturating_sub(before), usage::process_nanos() - cpu);
    let (begun, usage) = (Instant::now(), Usage::of_others()?);
    std::thread::sleep(scale.span);
    let (nanos, wakes) = Usage::of_others()?.since(usage);
    let seconds = begun.elapsed().as_secs_f64();
    let mut sample = Sample { measured: scale.pending, ..Sample::default() };
    sample.figure("schedule_ns", cpu as f64 / scale.pending as f64);
    sample.figure("cpu_us", nanos / 1e3 / seconds);
    sample.figure("wakes", wakes / seconds);
    sample.figure("bytes", bytes as f64 / scale.pending as f64);
    let cancelled = claims.into_iter().filter_map(|claim| producer.cancel(claim).then_some(())).count();
    sample.check("cancelled", cancelled as u64);
    Ok(sample)
}
