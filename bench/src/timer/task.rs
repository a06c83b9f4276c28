//! A peer: tokio's timer again, by a task for each timer, which is how programs use it. Only for lateness; without tasks it
//! costs less, and that is measured by the other one.

use std::sync::Arc;
use std::time::Duration;

use tickwheel::{Monotonic, SystemClock};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::stamps::Stamps;
use super::subject::{Producer, Service, Stamping};

/// A runtime with its usual number of threads.
#[derive(Debug)]
pub(crate) struct Tasks {
    runtime: Runtime,
}

/// One thread's way to it.
#[derive(Debug)]
pub(crate) struct Spawner<'a>(&'a Tasks);

impl Service for Tasks {
    type Producer<'a> = Spawner<'a>;

    fn start(_: Option<SystemClock>) -> Self {
        let runtime = Builder::new_multi_thread().enable_time().build().expect("a runtime");
        Self { runtime }
    }

    fn producer(&self, _: u32) -> Spawner<'_> {
        Spawner(self)
    }
}

impl Producer for Spawner<'_> {
    type Claim = AbortHandle;

    fn schedule(&mut self, delay: Duration) -> AbortHandle {
        self.0.runtime.spawn(async move { tokio::time::sleep(delay).await }).abort_handle()
    }

    fn cancel(&mut self, task: AbortHandle) -> bool {
        task.abort();
        true
    }
}

impl Stamping for Spawner<'_> {
    #[inline]
    fn stamp_at(&mut self, due: Monotonic, stamps: &Arc<Stamps>, index: usize) {
        let (due, stamps) = (Instant::from_std(stamps.epoch().instant(due)), Arc::clone(stamps));
        self.0.runtime.spawn(async move {
            tokio::time::sleep_until(due).await;
            stamps.stamp(index);
        });
    }
}
