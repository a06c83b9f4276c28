//! One queue on a disk, with its callers.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::ensure;
use tickwheel_queue::{Put, Queue, QueueName};

use crate::cpu::CpuTime;
use crate::embedded::{Caller, Load, together};

/// The work of one measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    tasks: u64,
    time: Duration,
    /// Processor time of the callers.
    load: Duration,
}

impl Work {
    /// Tasks in a second.
    pub(super) fn rate(self) -> f64 {
        self.tasks as f64 / self.time.as_secs_f64()
    }

    /// An estimate of the tasks in a second if the callers had processors of their own: without their share of the time of `processors`. It is
    /// exact if all processors are busy all the time.
    pub(super) fn rate_apart(self, processors: usize) -> f64 {
        let shared = self.load.as_secs_f64() / processors as f64;
        self.tasks as f64 / (self.time.as_secs_f64() - shared)
    }

    /// Processors that the callers keep busy.
    pub(super) fn load(self) -> f64 {
        self.load.as_secs_f64() / self.time.as_secs_f64()
    }
}

/// Returns the names of queues, half of them on each of two shards.
pub(super) fn names(count: u64) -> anyhow::Result<Vec<QueueName>> {
    let queue = Queue::options().shards(2).open_memory()?;
    let mut of_shard = [Vec::new(), Vec::new()];
    for n in 0_u32.. {
        let name = QueueName::new(&format!("shop/bench-{n}"))?;
        of_shard[usize::try_from(queue.shard_of(&name).number())?].push(name);
        if of_shard.iter().all(|names| names.len() as u64 >= count.div_ceil(2)) {
            break;
        }
    }
    queue.close();
    let [evens, odds] = of_shard;
    let both = evens.into_iter().zip(odds).flat_map(<[QueueName; 2]>::from);
    Ok(both.take(usize::try_from(count)?).collect())
}

/// Puts the tasks of `load` into a new directory. If they are due, takes them as well. Returns the work of the last of the two.
pub(super) fn measure(dir: &Path, shards: u32, load: &Load) -> anyhow::Result<Work> {
    let queue = Queue::options().shards(shards).open(dir)?;
    let work = put(&queue, load).and_then(|put| if load.is_due { take(&queue, load) } else { Ok(put) });
    queue.close();
    work
}

fn put(queue: &Queue, load: &Load) -> anyhow::Result<Work> {
    // The tasks are made before, so that a caller does little more than to call.
    let batches = |nth| -> anyhow::Result<Vec<Vec<Put>>> {
        let batch = |batch| load.of(nth, batch).into_iter().map(|task| task.put(&load.queues[nth])).collect();
        (0..load.batches).map(batch).collect()
    };
    let callers: Vec<_> = (0..load.queues.len()).map(batches).collect::<Result<_, _>>()?;
    worked(callers, load.tasks(), |batches| {
        let caller = Caller { queue: queue.clone() };
        batches.into_iter().try_for_each(|batch| caller.put(batch))?;
        Ok(load.batches * load.batch)
    })
}

fn take(queue: &Queue, load: &Load) -> anyhow::Result<Work> {
    worked(load.queues.iter().collect(), load.tasks(), |name| {
        let (caller, mut taken) = (Caller { queue: queue.clone() }, 0);
        while taken < load.batches * load.batch {
            taken += caller.take(name, load.batch)?;
        }
        Ok(taken)
    })
}

/// Runs one caller for each part, and adds up their processor time.
fn worked<P: Send>(
    parts: Vec<P>,
    tasks: u64,
    call: impl Fn(P) -> anyhow::Result<u64> + Sync,
) -> anyhow::Result<Work> {
    let nanos = AtomicU64::new(0);
    let (done, time) = together(parts, |part| {
        let begun = CpuTime::now();
        let done = call(part)?;
        nanos.fetch_add(begun.elapsed_nanos() as u64, Ordering::Relaxed);
        Ok(done)
    })?;
    ensure!(done == tasks, "{done} of {tasks} tasks were worked on");
    Ok(Work { tasks, time, load: Duration::from_nanos(nanos.into_inner()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_the_load_is_taken_from_all_processors() {
        let work = Work { tasks: 100, time: Duration::from_secs(10), load: Duration::from_secs(4) };
        assert_eq!((work.rate(), work.rate_apart(2), work.load()), (10.0, 12.5, 0.4));
    }

    #[test]
    fn each_shard_has_half_of_the_queues() {
        let queue = Queue::options().shards(2).open_memory().expect("a queue");
        let names = names(6).expect("names");
        let shards: Vec<u32> = names.iter().map(|name| queue.shard_of(name).number()).collect();
        assert_eq!(shards.len(), 6);
        assert!(shards.chunks(2).all(|pair| pair[0] != pair[1]), "{shards:?}");
        queue.close();
    }
}
