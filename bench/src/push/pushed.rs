//! [`Pushed`]: a queue in memory with a target.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use tickwheel_push::dispatch::Plan;
use tickwheel_push::{Push, Sink, Target, TargetState};
use tickwheel_queue::{Queue, QueueName, Timestamp};

use super::progress::Load;
use super::sample_message::{queue_name, task};

/// A target that confirms nothing more for this time is broken.
const PATIENCE: Duration = Duration::from_secs(30);

/// A queue in memory with a target.
pub(super) struct Pushed {
    pub(super) queue: Queue,
    name: QueueName,
    push: Push,
}

impl Pushed {
    /// Opens a queue without tasks and without a target.
    pub(super) fn open() -> anyhow::Result<Self> {
        let queue = Queue::options().open_memory()?;
        let (push, _) = Push::new(&queue);
        Ok(Self { queue, name: queue_name(), push })
    }

    /// Adds tasks with these instants; `None`: due at once.
    pub(super) fn fill(&self, dues: impl IntoIterator<Item = Option<Timestamp>>) -> anyhow::Result<()> {
        let dues = dues.into_iter().enumerate();
        let puts: Vec<_> = dues.map(|(n, due_at)| self.queue.put(task(n as u64, due_at))).collect();
        for put in puts {
            put.wait()?;
        }
        Ok(())
    }

    /// Gives the queue its target.
    pub(super) fn begin(&self, sink: Arc<dyn Sink>, plan: Plan) {
        self.push.set(&self.name, Target { plan, ..Target::new(sink) });
    }

    /// Sends tasks that are ready. Returns the messages in a second.
    pub(super) async fn rate(load: Load, sink: Arc<dyn Sink>, plan: Plan) -> anyhow::Result<f64> {
        let pushed = Self::open()?;
        pushed.fill(std::iter::repeat_n(None, usize::try_from(load.all())?))?;
        pushed.begin(sink, plan);
        let (begun, first) = pushed.confirmed(load.warm_up).await?;
        let (ended, last) = pushed.confirmed(load.all()).await?;
        pushed.end(load.all()).await?;
        Ok((last - first) as f64 / (ended - begun).as_secs_f64())
    }

    /// Waits until this many messages are confirmed. Returns when they were, and how many there were then.
    pub(super) async fn confirmed(&self, wanted: u64) -> anyhow::Result<(Instant, u64)> {
        let (mut last, mut since) = (0, Instant::now());
        loop {
            let confirmed = self.count("acked");
            if confirmed >= wanted {
                return Ok((Instant::now(), confirmed));
            }
            if confirmed > last {
                (last, since) = (confirmed, Instant::now());
            }
            if since.elapsed() > PATIENCE {
                let view = self.push.view(&self.name);
                bail!("{confirmed} of {wanted} messages are confirmed: {:?}", view.map(|view| view.reason));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Takes the target away, and checks that each message was sent once and that no task is left.
    pub(super) async fn end(self, messages: u64) -> anyhow::Result<()> {
        let all: Vec<_> = self.outcomes().into_iter().filter(|(_, count)| *count > 0).collect();
        ensure!(all == [("acked", messages)], "the outcomes of {messages} messages are {all:?}");
        self.push.stop(PATIENCE).await;
        let counts = self.queue.queue(&self.name).await?.counts;
        let left = counts.scheduled + counts.ready + counts.leased;
        ensure!(left == 0, "{left} tasks are left");
        self.queue.close();
        Ok(())
    }

    /// Returns the state of the target.
    pub(super) fn state(&self) -> Option<TargetState> {
        self.push.view(&self.name).map(|view| view.state)
    }

    /// Returns the number of attempts with this outcome.
    pub(super) fn count(&self, outcome: &str) -> u64 {
        self.outcomes().into_iter().find(|(name, _)| *name == outcome).map_or(0, |(_, count)| count)
    }

    fn outcomes(&self) -> Vec<(&'static str, u64)> {
        self.push.view(&self.name).map_or(Vec::new(), |view| view.figures.outcomes().collect())
    }
}
