//! W4: few timers, far apart: N of them over 30 days, from each to the next.

use super::effort::Effort;
use super::subject::{Fired, Subject};
use crate::cpu::CpuTime;
use crate::random::Random;
use crate::sample::Sample;

/// In ticks of 1 ms.
const SPAN: u64 = 30 * 86_400_000;

/// Measures the way from the first to the last of `n` timers, again and again until 200,000 of them have fired, after one
/// time to warm up. Starting them is not measured. Some fire together, and count as one each.
pub(crate) fn sample<S: Subject>(n: u64, effort: Effort) -> Sample {
    let mut subject = S::new();
    let mut random = Random::new(4);
    let times = (effort.operations(n) / 10).div_ceil(n);
    let mut heap_bytes = None;
    let (mut start, mut nanos, mut stops, mut fired) = (0, 0.0, 0, Fired::default());
    let mut measured = 0;
    for time in 0..=times {
        let mut last = start;
        let mut handles = Vec::with_capacity(n as usize);
        for value in time * n..(time + 1) * n {
            let deadline = start + 1 + random.below(SPAN);
            last = last.max(deadline);
            handles.push(subject.insert(deadline, value));
        }
        heap_bytes = heap_bytes.or_else(|| subject.heap_bytes());
        let begun = CpuTime::now();
        let (mut stops_now, mut fired_now) = (0, Fired::default());
        while fired_now.count < n {
            let jump = subject.next();
            stops_now += jump.stops;
            fired_now += jump.fired;
        }
        let passed = begun.elapsed_nanos();
        handles.into_iter().for_each(|handle| subject.release(handle));
        start = last;
        if time > 0 {
            measured += n;
            nanos += passed;
            stops += stops_now;
            fired += fired_now;
        }
        if nanos > effort.nanos_max() {
            break;
        }
    }
    let mut sample = Sample { measured, ..Sample::default() };
    sample.figure("timer_ns", nanos / measured as f64);
    sample.figure("stops", stops as f64 / measured as f64);
    if let Some(bytes) = heap_bytes {
        sample.figure("heap_bytes", bytes as f64);
    }
    if measured == times * n {
        sample.check("fired", fired.count);
        if S::KNOWS_VALUES {
            sample.check("sum", fired.sum);
        }
    }
    sample
}
