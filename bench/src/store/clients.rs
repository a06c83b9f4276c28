//! S1 and a part of S3: 64 clients that each wait for their answer before they ask again, threads or futures.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tokio::task::{LocalSet, spawn_local};

use super::raw::{self, Rate};
use super::record::wall;
use super::scene::Scene;
use super::subject::Keeper;
use super::writer::served;
use crate::sample::Sample;

const CLIENTS: u64 = 64;
/// What a commit of that many puts of 200 B takes.
const RAW_BYTES: usize = 16 << 10;

/// What they put, and how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clients {
    /// The first record that nobody has used.
    pub(crate) first: u64,
    pub(crate) span: Duration,
}

impl Clients {
    /// Each makes its own state and calls `op` with it and the next number, again and again.
    pub(crate) fn each<C>(
        &self,
        make: impl Fn() -> anyhow::Result<C> + Sync,
        op: impl Fn(&mut C, u64) -> anyhow::Result<()> + Sync,
    ) -> anyhow::Result<Rate> {
        let (next, stop, begun) = (AtomicU64::new(self.first), AtomicBool::new(false), Instant::now());
        std::thread::scope(|scope| {
            let work = || {
                let mut state = make()?;
                while !stop.load(Ordering::Relaxed) {
                    op(&mut state, next.fetch_add(1, Ordering::Relaxed))?;
                }
                Ok(())
            };
            let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(work)).collect();
            std::thread::sleep(self.span);
            stop.store(true, Ordering::Relaxed);
            let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<()>>| thread.join();
            threads
                .into_iter()
                .map(join)
                .try_for_each(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })?;
        let count = next.into_inner() - self.first;
        Ok(Rate { count, seconds: begun.elapsed().as_secs_f64() })
    }

    /// The same with futures on one thread in the place of threads.
    pub(crate) fn each_async<F>(&self, op: impl Fn(u64) -> F + Clone + 'static) -> anyhow::Result<Rate>
    where
        F: Future<Output = anyhow::Result<()>>,
    {
        let (next, begun, span) = (Rc::new(Cell::new(self.first)), Instant::now(), self.span);
        let client = || {
            let (next, op) = (Rc::clone(&next), op.clone());
            async move {
                while begun.elapsed() < span {
                    op(next.replace(next.get() + 1)).await?;
                }
                anyhow::Ok(())
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().context("start a runtime")?;
        LocalSet::new().block_on(&runtime, async {
            let clients: Vec<_> = (0..CLIENTS).map(|_| spawn_local(client())).collect();
            for client in clients {
                client.await??;
            }
            anyhow::Ok(())
        })?;
        Ok(Rate { count: next.get() - self.first, seconds: begun.elapsed().as_secs_f64() })
    }

    pub(crate) fn puts(&self, put: impl Fn(u64) -> anyhow::Result<()> + Sync) -> anyhow::Result<Rate> {
        self.each(|| Ok(()), |(), n| put(n))
    }

    pub(crate) fn pairs(
        &self,
        put: impl Fn(u64) -> anyhow::Result<()> + Sync,
        cancel: impl Fn(u64) -> anyhow::Result<()> + Sync,
    ) -> anyhow::Result<Rate> {
        self.each(
            || Ok(()),
            |(), n| {
                put(n)?;
                cancel(n)
            },
        )
    }
}

/// S1, whoever answers: `puts` does it for some time. More is better.
pub(crate) fn puts_beside(
    dir: &Path,
    first: &mut u64,
    span: Duration,
    mut puts: impl FnMut(Clients) -> anyhow::Result<Rate>,
) -> anyhow::Result<Sample> {
    let mut rate = Rate::default();
    let beside = raw::beside(dir, RAW_BYTES, span, |span| {
        let some = puts(Clients { first: *first, span })?;
        *first += some.count;
        rate += some;
        Ok(())
    })?;
    let raw = beside.times.per_second();
    let mut sample = Sample { measured: rate.count, ..Sample::default() };
    sample.figure("ops_s", rate.per_second());
    sample.figure("raw_s", raw);
    sample.figure("raw_swing", beside.swing);
    sample.figure("ops_s/64-raw", rate.per_second() / (CLIENTS as f64 * raw));
    sample.figure("ops_s/raw", rate.per_second() / raw);
    Ok(sample)
}

/// The figure of clients in S3.
pub(crate) fn pairs_sample(sample: &mut Sample, rate: Rate) {
    sample.figure("client_pairs_s", rate.per_second());
    sample.measured += rate.count;
}

/// S1 with the thread that commits for all.
pub(crate) fn puts_of<K: Keeper>(scene: &mut Scene<'_, K>) -> anyhow::Result<Sample> {
    let Scene { keeper, records, next, span, dir, .. } = scene;
    puts_beside(dir, next, *span, |clients| {
        served(keeper, |client| {
            clients.each(|| Ok(client.clone()), |client, n| client.put(records.get(n, wall())?).map(drop))
        })
    })
}

/// The part of S3 with that thread.
pub(crate) fn pairs_of<K: Keeper>(scene: &mut Scene<'_, K>) -> anyhow::Result<Rate> {
    let Scene { keeper, records, next, span, .. } = scene;
    let clients = Clients { first: *next, span: *span };
    let rate = served(keeper, |client| {
        clients.each(
            || Ok(client.clone()),
            |client, n| {
                client.put(records.get(n, wall())?)?;
                let is_cancelled = client.cancel(records.key(n)?)?;
                ensure!(is_cancelled, "number {n} was put and could not be cancelled");
                Ok(())
            },
        )
    })?;
    *next += rate.count;
    Ok(rate)
}
