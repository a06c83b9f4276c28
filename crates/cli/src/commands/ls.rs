//! `tickwheel ls`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{LIST_LIMIT_MAX, ListQuery, QueueCounts, TaskBody, TaskFilter};
use tickwheel_client::blocking::Client;

use crate::filter::Filter;
use crate::missing;
use crate::output::{Format, say};
use crate::remote::Remote;
use crate::values;

/// List tasks in the order of their due time
///
/// Without a queue, the command lists the tasks of all queues, one queue after the other.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel ls close
  tickwheel ls close --state ready --limit 1000
  tickwheel ls close --tag vip --due-to 2030-01-01T00:00:00Z
  tickwheel ls close --key-contains order: --group user:7
  tickwheel ls --all -o json | jq -r .key")]
pub(crate) struct Ls {
    /// The queue [default: every queue]
    #[arg(value_parser = values::queue)]
    queue: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// The largest number of tasks to list, of all queues together
    #[arg(long, value_name = "N", default_value = "100", value_parser = values::limit)]
    limit: usize,
    /// List all tasks, without a limit
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

/// The largest number of queues that are looked at once the limit is reached, to tell whether there are more tasks.
const LOOKED_MAX: usize = 16;

impl Ls {
    /// Reads one page after the other and prints the tasks.
    ///
    /// # Errors
    /// There is no server.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let filter = self.filter.wanted();
        let mut left = if self.all { usize::MAX } else { self.limit };
        let queues = match &self.queue {
            Some(queue) => vec![queue.clone()],
            None => client.queues()?.into_iter().filter(has_tasks).map(|queue| queue.queue).collect(),
        };
        let (mut tasks, mut is_empty, mut more, mut looked) = (Vec::new(), true, None, 0);
        for queue in queues {
            if left == 0 {
                // The limit is reached. A look at the other queues tells whether they have any task for the list.
                looked += 1;
                let is_unknown = looked > LOOKED_MAX;
                if is_unknown || Listing::new(&client, queue, filter.clone(), 1).has_any()? {
                    let verb = if is_unknown { "may be" } else { "are" };
                    more = Some(format!("there {verb} more tasks; --limit N shows N, --all shows all"));
                    break;
                }
                continue;
            }
            let mut listing = Listing::new(&client, queue, filter.clone(), left);
            while let Some(page) = listing.next_page()? {
                is_empty &= page.is_empty();
                if self.format.is_json() {
                    // Pages are printed as they come: the list may be larger than the memory.
                    self.format.print(page)?;
                } else {
                    tasks.extend(page);
                }
            }
            left = listing.left;
            more = listing.more();
            if more.is_some() {
                break;
            }
        }
        if let Some(queue) = self.queue.as_deref().filter(|_| is_empty) {
            missing::check(&client, queue)?;
        }
        if !self.format.is_json() {
            if tasks.is_empty() {
                say("no tasks");
            } else {
                self.format.print(tasks)?;
            }
        }
        if let Some(more) = more {
            say(&more);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether the queue has a task. Lists also name queues that have settings only, or were emptied within the last hour.
fn has_tasks(counts: &QueueCounts) -> bool {
    counts.scheduled + counts.ready + counts.leased + counts.dead > 0
}

/// The tasks of one queue, page by page.
pub(super) struct Listing<'a> {
    client: &'a Client,
    queue: String,
    query: ListQuery,
    /// Whether dead tasks are listed.
    is_dead: bool,
    left: usize,
    ended: bool,
    /// Whether the list goes on beyond the limit.
    has_more: bool,
}

impl<'a> Listing<'a> {
    fn new(client: &'a Client, queue: String, filter: TaskFilter, limit: usize) -> Self {
        let query = ListQuery { filter, ..ListQuery::default() };
        Self { client, queue, query, is_dead: false, left: limit, ended: false, has_more: false }
    }

    /// The dead tasks of a queue.
    pub(super) fn of_dead(client: &'a Client, queue: String, filter: TaskFilter, limit: usize) -> Self {
        Self { is_dead: true, ..Self::new(client, queue, filter, limit) }
    }

    /// The name of the queue.
    pub(super) fn queue(&self) -> &str {
        &self.queue
    }

    /// A line for the reader of a list that goes on beyond the limit.
    pub(super) fn more(&self) -> Option<String> {
        self.has_more.then(|| format!("{} has more tasks; --limit N shows N, --all shows all", self.queue))
    }

    /// Whether the list has a task.
    fn has_any(&mut self) -> Result<bool> {
        while let Some(page) = self.next_page()? {
            if !page.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The next page; it may be empty. `None`: the list ended, or the limit is reached.
    pub(super) fn next_page(&mut self) -> Result<Option<Vec<TaskBody>>> {
        if self.ended {
            return Ok(None);
        }
        self.query.limit = self.left.min(LIST_LIMIT_MAX);
        let page = match self.is_dead {
            true => self.client.dead(&self.queue, &self.query)?,
            false => self.client.list(&self.queue, &self.query)?,
        };
        self.left -= page.tasks.len().min(self.left);
        self.query.cursor = page.next_cursor;
        self.has_more = self.query.cursor.is_some() && self.left == 0;
        self.ended = self.query.cursor.is_none() || self.left == 0;
        Ok(Some(page.tasks))
    }
}
