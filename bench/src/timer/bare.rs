//! The limit of `lateness`: a thread that does nothing but sleep from millisecond to millisecond.

use std::num::NonZeroU64;

use tickwheel::{Clock, Monotonic};

use super::scale::Scale;
use super::spread::Spread;
use super::stamps::Epoch;
use crate::sample::Sample;

const MILLI: NonZeroU64 = NonZeroU64::new(1_000_000).expect("not 0");

/// Sleeps until the next whole millisecond, again and again, and returns how late it woke for each of them.
pub(crate) fn grid(epoch: Epoch, mut over: impl FnMut() -> bool) -> Vec<i64> {
    let mut late = Vec::new();
    let mut next = epoch.clock.now().floor_ticks(MILLI) + 1;
    while !over() {
        epoch.sleep_until(Monotonic::from_tick(next, MILLI));
        let woken = epoch.clock.now();
        late.extend(late_for(next, woken));
        next = woken.floor_ticks(MILLI).max(next) + 1;
    }
    late
}

/// How late a wake-up is for the milliseconds from `next` on that have passed by then. Who sleeps through ten of them is
/// late ten times: as many timers would have been due.
fn late_for(next: u64, woken: Monotonic) -> impl Iterator<Item = i64> {
    let passed = next..=woken.floor_ticks(MILLI).max(next);
    passed.map(move |tick| woken.as_nanos() as i64 - Monotonic::from_tick(tick, MILLI).as_nanos() as i64)
}

/// The grid alone, while nothing else runs in its process.
pub(crate) fn sample(scale: &Scale) -> Sample {
    let epoch = Epoch::new();
    let end = epoch.clock.now().saturating_add(scale.part * scale.parts);
    let late = grid(epoch, || epoch.clock.now() > end);
    let mut sample = Sample { measured: late.len() as u64, ..Sample::default() };
    let late = Spread::new(late);
    late.figures(&mut sample, "");
    sample.figure("early", late.early() as f64);
    // The grid is its tick.
    late.figures(&mut sample, "tick_");
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_sleep_is_late_for_each_millisecond_it_missed() {
        let late = |woken| late_for(7, Monotonic::from_nanos(woken)).collect::<Vec<i64>>();
        assert_eq!(late(7_000_100), [100]);
        assert_eq!(late(9_500_000), [2_500_000, 1_500_000, 500_000]);
        // An early one would show.
        assert_eq!(late(6_999_999), [-1]);
    }
}
