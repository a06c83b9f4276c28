//! The queue on PostgreSQL, embedded in this process.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tickwheel_postgres::PostgresOptions;
use tickwheel_queue::{Ack, Lease, Queue, QueueName, TokenAnswer};

use super::base::Base;
use super::link::Link;
use super::load::{Load, Task};
use super::server::Server;
use super::subject::{Subject, Worker, Workers};

/// A worker waits this long for a ready task.
const WAIT: Duration = Duration::from_secs(5);

/// A queue with the default options, and its database.
pub(super) struct Ours {
    queue: Queue,
    base: Base,
}

impl Ours {
    pub(super) fn open(server: &Server) -> anyhow::Result<Self> {
        let base = Base::make(server)?;
        let stores = PostgresOptions::new(&base.url).connect().context("open the queue")?;
        Ok(Self { queue: Queue::options().open_shards(stores)?, base })
    }

    /// Returns how many shards there are, and how many connections to the database.
    pub(super) fn describe(&self) -> anyhow::Result<String> {
        let count = "SELECT count(*)::text FROM pg_stat_activity WHERE application_name LIKE 'tickwheel/%' AND datname = current_database()";
        let connections = Link::open(&self.base.url)?.text(count)?;
        Ok(format!("{} shards, {connections} connections", self.queue.shards()))
    }

    /// Returns the bytes of the record and of the body of a task in the table.
    pub(super) fn bytes_of(&self, load: &Load) -> anyhow::Result<(usize, usize)> {
        let queue = &load.queues[0];
        self.queue.put(load.task(0, 0).put(queue)?).wait()?;
        let mut link = Link::open(&self.base.url)?;
        let mut bytes = |column: &str| -> anyhow::Result<usize> {
            let text = link.text(&format!("SELECT octet_length({column})::text FROM tickwheel.task"))?;
            Ok(text.parse()?)
        };
        Ok((bytes("record")?, bytes("body")?))
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Subject for Ours {
    fn base(&self) -> &Base {
        &self.base
    }

    fn table(&self) -> &'static str {
        "tickwheel.task"
    }

    fn workers(&self, load: &Load) -> anyhow::Result<Workers> {
        let caller = |queue| -> (Box<dyn Worker>, Vec<usize>) {
            (Box::new(Caller { queue: self.queue.clone(), names: load.queues.clone() }), vec![queue])
        };
        Ok((0..load.queues.len()).map(caller).collect())
    }
}

struct Caller {
    queue: Queue,
    names: Vec<QueueName>,
}

impl Worker for Caller {
    fn put(&mut self, queue: usize, tasks: Vec<Task>) -> anyhow::Result<()> {
        let name = &self.names[queue];
        let puts: Result<Vec<_>, _> =
            tasks.into_iter().map(|task| task.put(name).map(|put| self.queue.put(put))).collect();
        for put in puts? {
            ensure!(put.wait()?.created, "the task was there");
        }
        Ok(())
    }

    fn put_one(&mut self, queue: usize, task: Task) -> anyhow::Result<()> {
        ensure!(self.queue.put(task.put(&self.names[queue])?).wait()?.created, "the task was there");
        Ok(())
    }

    fn take(&mut self, queue: usize, max: u64) -> anyhow::Result<u64> {
        let name = &self.names[queue];
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
