//! The limit of `lateness`: a thread that does nothing but sleep from millisecond to millisecond.

use std::num::NonZeroU64;

use tickwheel::{Clock, Monotonic};

use super::scale::Scale;
use super::spread::Spread;
use super::stamps::Epoch;
use super::workload::Workload;
use crate::sample::Sample;

const MILLI: NonZeroU64 = NonZeroU64::new(1_000_000).expect("not 0");

/// Sleeps until the next whole millisecond, again and again, and returns how late it woke each time.
pub(crate) fn grid(epoch: Epoch, mut over: impl FnMut() -> bool) -> Vec<i64> {
    let mut late = Vec::new();
    while !over() {
        let next = Monotonic::from_tick(epoch.clock.now().floor_ticks(MILLI) + 1, MILLI);
        let nanos = epoch.sleep_until(next).map(|late| late.as_nanos() as i64);
        late.extend(nanos);
    }
    late
}

/// The grid alone, while nothing else runs in its process.
pub(crate) fn sample(workload: Workload, scale: &Scale) -> Option<Sample> {
    if workload != Workload::Lateness {
        return None;
    }
    let epoch = Epoch::new();
    let end = epoch.clock.now().saturating_add(scale.part * scale.parts);
    let late = grid(epoch, || epoch.clock.now() > end);
    let mut sample = Sample { measured: late.len() as u64, ..Sample::default() };
    let late = Spread::new(late);
    late.figures(&mut sample, "");
    sample.figure("early", late.early() as f64);
    // The grid is its tick.
    late.figures(&mut sample, "tick_");
    Some(sample)
}
