//! Batches of puts, made by a thread of their own: what is measured commits them and does not make them.

use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use tickwheel_queue::Timestamp;

use super::record::{Records, wall};
use super::subject::Keeper;

/// Changes in one batch.
pub(crate) const BATCH: u64 = 1_000;
/// Batches that wait.
const AHEAD: usize = 2;

/// Calls `work` with the batches of these numbers. They end when all are made; `work` may leave earlier.
pub(crate) fn fed<K: Keeper, T>(
    records: &Records,
    numbers: Range<u64>,
    work: impl FnOnce(&Receiver<Vec<K::Change>>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(AHEAD);
        let maker = scope.spawn(move || -> anyhow::Result<()> {
            let mut first = numbers.start;
            while first < numbers.end {
                let last = (first + BATCH).min(numbers.end);
                if sender.send(batch::<K>(records, first..last, wall())?).is_err() {
                    break;
                }
                first = last;
            }
            Ok(())
        });
        let done = work(&receiver);
        drop(receiver);
        let made = maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Without a batch the work has a reason to fail; this one is the cause.
        made.and(done)
    })
}

/// The puts of these numbers, made at `put_at`.
pub(crate) fn batch<K: Keeper>(
    records: &Records,
    numbers: Range<u64>,
    put_at: Timestamp,
) -> anyhow::Result<Vec<K::Change>> {
    numbers.map(|n| Ok(K::put(records.get(n, put_at)?))).collect()
}

/// Puts all of these numbers, and says how many in a second.
pub(crate) fn fill<K: Keeper>(keeper: &mut K, records: &Records, numbers: Range<u64>) -> anyhow::Result<f64> {
    let (count, begun) = (numbers.end - numbers.start, Instant::now());
    fed::<K, _>(records, numbers, |batches| {
        batches.iter().try_for_each(|batch| keeper.commit(wall(), batch))
    })?;
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}
