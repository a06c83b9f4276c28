//! W1: one of N pending timers is cancelled and another one started, again and again, while no time passes.
//!
//! The array of N handles is part of the work for everybody: a random one is read, its timer cancelled, and the handle of
//! the new timer stored in its place.

use super::effort::{DELAY_MAX, Effort};
use super::subject::Store;
use crate::random::Random;
use crate::sample::Sample;

/// N pending timers and their handles.
struct Pending<S: Store> {
    store: S,
    handles: Vec<S::Handle>,
    random: Random,
    next_value: u64,
    cancelled: u64,
}

impl<S: Store> Pending<S> {
    fn new(n: u64) -> Self {
        let mut store = S::new();
        let mut random = Random::new(1);
        let mut handles = Vec::with_capacity(n as usize);
        for value in 0..n {
            handles.push(store.insert(1 + random.below(DELAY_MAX), value));
        }
        Self { store, handles, random, next_value: n, cancelled: 0 }
    }

    #[inline]
    fn exchange(&mut self, pairs: u64) {
        let n = self.handles.len() as u64;
        for _ in 0..pairs {
            let (index, delay) = self.random.two_below(n, DELAY_MAX);
            let handle = &mut self.handles[index as usize];
            let cancelled = self.store.replace(handle, 1 + delay, self.next_value);
            self.cancelled = self.cancelled.wrapping_add(cancelled);
            self.next_value += 1;
        }
    }
}

/// Measures `2 n` pairs, or at least 2,000,000, after half as many to warm up.
pub(crate) fn sample<S: Store>(n: u64, effort: Effort) -> Sample {
    let pairs = effort.operations(2 * n);
    let mut pending: Pending<S> = Pending::new(n);
    effort.warm_up(pairs / 2, |block| pending.exchange(block));
    // A warm-up that ended early has not come as far as the others: the counts are compared only if it did not.
    let warm = pending.next_value == n + pairs / 2;
    let cancelled = pending.cancelled;
    let (measured, nanos) = effort.measure(pairs, |block| pending.exchange(block));
    let mut sample = Sample { measured, ..Sample::default() };
    sample.figure("pair_ns", nanos / measured as f64);
    if warm && measured == pairs {
        sample.check("cancelled", pending.cancelled.wrapping_sub(cancelled));
    }
    for handle in pending.handles {
        pending.store.release(handle);
    }
    sample
}
