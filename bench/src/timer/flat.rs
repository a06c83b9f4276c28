//! Whether memory stays what it was: ten million timers of ten minutes, each cancelled while a thousand others wait.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::scale::Scale;
use super::subject::{Producer, Service};
use super::usage;
use crate::rss;
use crate::sample::Sample;

const DELAY: Duration = Duration::from_secs(600);
const RING: usize = 1_000;

/// Compares resident memory before and after, each time once the timer's own threads have come to rest. A hundredth of the pairs
/// come before.
///
/// # Errors
/// Where the system does not tell.
pub(crate) fn sample<S: Service>(scale: &Scale) -> anyhow::Result<Sample> {
    let service = S::start(None);
    let mut producer = service.producer(0);
    let mut ring: VecDeque<_> = (0..RING).map(|_| producer.schedule(DELAY)).collect();
    let mut cancelled = 0;
    let mut exchange = |pairs: u64| {
        for _ in 0..pairs {
            ring.push_back(producer.schedule(DELAY));
            if let Some(oldest) = ring.pop_front() {
                cancelled += u64::from(producer.cancel(oldest));
            }
        }
        let ended = usage::wait_for_rest(scale.patience)?;
        anyhow::Ok((rss::resident_bytes()?, ended))
    };
    let (before, _) = exchange(scale.pairs_flat / 100)?;
    let begun = Instant::now();
    let (after, ended) = exchange(scale.pairs_flat)?;
    let nanos = (ended - begun).as_nanos() as f64;
    let mut sample = Sample { measured: scale.pairs_flat, ..Sample::default() };
    sample.figure("before_kb", before as f64 / 1_024.0);
    sample.figure("after_kb", after as f64 / 1_024.0);
    sample.figure("growth_kb", (after as f64 - before as f64) / 1_024.0);
    sample.figure("pair_ns", nanos / scale.pairs_flat as f64);
    sample.check("cancelled", cancelled);
    Ok(sample)
}
