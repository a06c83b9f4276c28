//! [`Caller`]: one thread that calls a queue in this process.

use std::time::Duration;

use anyhow::{bail, ensure};
use tickwheel_queue::{Ack, Lease, Put, Queue, QueueName, TokenAnswer};

/// A caller waits this long for a ready task.
const WAIT: Duration = Duration::from_secs(5);

/// One thread that calls a queue in this process. It has one call, or one batch of calls, under way.
pub(crate) struct Caller {
    pub(crate) queue: Queue,
}

impl Caller {
    /// Puts new tasks. They are durable when the call returns.
    pub(crate) fn put(&self, puts: Vec<Put>) -> anyhow::Result<()> {
        let puts: Vec<_> = puts.into_iter().map(|put| self.queue.put(put)).collect();
        for put in puts {
            ensure!(put.wait()?.created, "the task was there");
        }
        Ok(())
    }

    /// Leases up to this many tasks, at least one, and acks them. They are ended durably when the call returns.
    pub(crate) fn take(&self, name: &QueueName, max: u64) -> anyhow::Result<u64> {
        let leased = self.queue.lease(Lease::new(name).max(usize::try_from(max)?), WAIT).wait()?;
        if leased.is_empty() {
            bail!("no task is ready");
        }
        let count = leased.len() as u64;
        let answers = self.queue.ack(Ack::new(name, leased.into_iter().map(|leased| leased.token))).wait()?;
        let good = answers.iter().filter(|answer| matches!(answer, TokenAnswer::Acked)).count() as u64;
        ensure!(good == count, "{good} of {count} tasks were acked");
        Ok(count)
    }
}
