//! W6: resident memory for each of N pending timers, without the array of their handles.

use super::effort::DELAY_MAX;
use super::subject::Store;
use crate::random::Random;
use crate::rss;
use crate::sample::Sample;

/// Reads the memory of this process before and after `n` timers were started, and again after `n` of them were cancelled and
/// started anew. No figures where the system does not tell.
pub(crate) fn sample<S: Store>(n: u64) -> Sample {
    let mut sample = Sample { measured: n, ..Sample::default() };
    let mut random = Random::new(6);
    let mut store = S::new();
    // Not touched yet, so not resident: it is all added by what follows.
    let mut handles: Vec<S::Handle> = Vec::with_capacity(n as usize);
    let handle_bytes = size_of::<S::Handle>() as f64;
    let before = rss::resident_bytes();
    let each = |after: anyhow::Result<u64>| {
        let bytes = after.ok()?.saturating_sub(*before.as_ref().ok()?);
        Some(bytes as f64 / n as f64 - handle_bytes)
    };
    for value in 0..n {
        handles.push(store.insert(1 + random.below(DELAY_MAX), value));
    }
    if let Some(bytes) = each(rss::resident_bytes()) {
        sample.figure("filled_bytes", bytes);
    }
    let mut cancelled: u64 = 0;
    for value in n..2 * n {
        let (index, delay) = random.two_below(n, DELAY_MAX);
        cancelled = cancelled.wrapping_add(store.replace(&mut handles[index as usize], 1 + delay, value));
    }
    if let Some(bytes) = each(rss::resident_bytes()) {
        sample.figure("churned_bytes", bytes);
    }
    sample.check("cancelled", cancelled);
    handles.into_iter().for_each(|handle| store.release(handle));
    sample
}
