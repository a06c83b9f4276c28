//! How late a thread of this process wakes from a sleep: what the machine did to everybody at the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Sleeps from millisecond to millisecond until it is told to stop; how late each time, in nanoseconds.
pub(crate) fn sleep(stop: &AtomicBool) -> Vec<f64> {
    let (begun, step) = (Instant::now(), Duration::from_millis(1));
    let (mut late, mut at) = (Vec::new(), step);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(at.saturating_sub(begun.elapsed()));
        let passed = begun.elapsed();
        late.push(passed.saturating_sub(at).as_nanos() as f64);
        at = (at + step).max(passed);
    }
    late
}
