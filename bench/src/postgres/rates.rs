//! Tasks in a second: put far from their due times, and taken when they are due.

use anyhow::ensure;

use super::subject::{Subject, Worker};
use crate::embedded::{Load, together};

/// Returns the tasks that were put in a second.
pub(super) fn schedule(subject: &dyn Subject, load: &Load) -> anyhow::Result<f64> {
    let mut workers = subject.workers(load)?;
    // One batch of each queue before: statements are prepared, and threads run.
    let before = workers.iter_mut().map(|(worker, queues)| (worker, queues.clone()));
    together(before, |(worker, queues)| fill(&mut **worker, load, &queues, load.batches..=load.batches))?;
    subject.base().settle()?;
    let (put, time) =
        together(workers, |(mut worker, queues)| fill(&mut *worker, load, &queues, 0..=load.batches - 1))?;
    let (rows, before) = (subject.count()?, load.queues.len() as u64 * load.batch);
    ensure!(
        put == load.tasks() && rows == put + before,
        "{put} tasks were put after {before}, and there are {rows}"
    );
    Ok(put as f64 / time.as_secs_f64())
}

/// Returns the tasks that were taken and ended in a second. All are due before the measurement begins.
pub(super) fn acked(subject: &dyn Subject, load: &Load) -> anyhow::Result<f64> {
    let mut workers = subject.workers(load)?;
    let before = workers.iter_mut().map(|(worker, queues)| (worker, queues.clone()));
    together(before, |(worker, queues)| {
        fill(&mut **worker, load, &queues, load.batches..=load.batches)?;
        drain(&mut **worker, load, &queues, load.batch)?;
        fill(&mut **worker, load, &queues, 0..=load.batches - 1)
    })?;
    ensure!(subject.count()? == load.tasks(), "{} tasks are missing", load.tasks());
    subject.analyze()?;
    subject.base().settle()?;
    let (taken, time) = together(workers, |(mut worker, queues)| {
        drain(&mut *worker, load, &queues, load.batches * load.batch)
    })?;
    ensure!(taken == load.tasks() && subject.count()? == 0, "{taken} of {} tasks were taken", load.tasks());
    Ok(taken as f64 / time.as_secs_f64())
}

fn fill(
    worker: &mut dyn Worker,
    load: &Load,
    queues: &[usize],
    batches: std::ops::RangeInclusive<u64>,
) -> anyhow::Result<u64> {
    let mut put = 0;
    for batch in batches {
        for &queue in queues {
            worker.put(queue, load.of(queue, batch))?;
            put += load.batch;
        }
    }
    Ok(put)
}

/// Takes this many tasks of each queue.
fn drain(worker: &mut dyn Worker, load: &Load, queues: &[usize], each: u64) -> anyhow::Result<u64> {
    let mut all = 0;
    for &queue in queues {
        let mut taken = 0;
        while taken < each {
            taken += worker.take(queue, load.batch)?;
        }
        all += taken;
    }
    Ok(all)
}
