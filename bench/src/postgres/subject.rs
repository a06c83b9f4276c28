//! [`Subject`]: the seam behind which each implementation stands.

use super::base::Base;
use super::link::Link;
use crate::embedded::{Load, Task};

/// The callers of an implementation, each with the numbers of the queues that it has.
pub(super) type Workers = Vec<(Box<dyn Worker>, Vec<usize>)>;

/// An implementation, with a database of its own.
pub(super) trait Subject {
    fn base(&self) -> &Base;

    /// Returns the name of the table that has a row for each task.
    fn table(&self) -> &'static str;

    /// Returns the callers, each with the queues that it has. They connect and prepare, if they have to.
    fn workers(&self, load: &Load) -> anyhow::Result<Workers>;

    /// Returns the number of tasks in the table.
    fn count(&self) -> anyhow::Result<u64> {
        let sql = format!("SELECT count(*)::text FROM {}", self.table());
        Ok(Link::open(&self.base().url)?.text(&sql)?.parse()?)
    }

    /// Gives the planner the statistics of the table, which the autovacuum brings sooner or later.
    fn analyze(&self) -> anyhow::Result<()> {
        Link::open(&self.base().url)?.script(&format!("ANALYZE {}", self.table()))
    }
}

/// A caller, in one thread.
pub(super) trait Worker: Send {
    /// Puts new tasks. They are durable when the call returns.
    fn put(&mut self, queue: usize, tasks: Vec<Task>) -> anyhow::Result<()>;

    /// Puts one new task.
    fn put_one(&mut self, queue: usize, task: Task) -> anyhow::Result<()>;

    /// Takes up to this many tasks that are due, at least one, and ends them. They are ended durably when the call returns.
    fn take(&mut self, queue: usize, max: u64) -> anyhow::Result<u64>;
}
