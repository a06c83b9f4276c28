//! The queue on PostgreSQL, embedded in this process.

use anyhow::Context;
use tickwheel_postgres::PostgresOptions;
use tickwheel_queue::{Put, Queue, QueueName};

use super::base::Base;
use super::link::Link;
use super::server::Server;
use super::subject::{Subject, Worker, Workers};
use crate::embedded::{Caller, Load, Task};

/// A queue with the default options, and its database.
pub(super) struct Ours {
    queue: Queue,
    base: Base,
    /// Whether the tasks are put without keys.
    is_keyless: bool,
}

impl Ours {
    pub(super) fn open(server: &Server, is_keyless: bool) -> anyhow::Result<Self> {
        let base = Base::make(server)?;
        let stores = PostgresOptions::new(&base.url).connect().context("open the queue")?;
        Ok(Self { queue: Queue::options().open_shards(stores)?, base, is_keyless })
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
            let caller = Caller { queue: self.queue.clone() };
            let names = load.queues.clone();
            (Box::new(Named { caller, names, is_keyless: self.is_keyless }), vec![queue])
        };
        Ok((0..load.queues.len()).map(caller).collect())
    }
}

/// A caller, and the names of the queues.
struct Named {
    caller: Caller,
    names: Vec<QueueName>,
    is_keyless: bool,
}

impl Named {
    fn call(&self, queue: usize, task: Task) -> anyhow::Result<Put> {
        let name = &self.names[queue];
        if self.is_keyless { task.put_keyless(name) } else { task.put(name) }
    }
}

impl Worker for Named {
    fn put(&mut self, queue: usize, tasks: Vec<Task>) -> anyhow::Result<()> {
        let puts = tasks.into_iter().map(|task| self.call(queue, task));
        self.caller.put(puts.collect::<Result<_, _>>()?)
    }

    fn put_one(&mut self, queue: usize, task: Task) -> anyhow::Result<()> {
        self.caller.put(vec![self.call(queue, task)?])
    }

    fn take(&mut self, queue: usize, max: u64) -> anyhow::Result<u64> {
        self.caller.take(&self.names[queue], max)
    }
}
