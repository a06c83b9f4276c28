//! `tickwheel dead`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use tickwheel_api::{DeadGroupBody, DeadWindow, DeathReason, FailureKind, TaskBody, time};

use super::ls::Listing;
use crate::filter::{Conditions, DEAD_FILTER, OfDead};
use crate::missing;
use crate::output::{Format, Row, say};
use crate::remote::Remote;
use crate::values;

/// List the dead tasks of a queue, or group them by their causes of death
///
/// With --groups, the newest 10,000 dead tasks are grouped by the reason for which they were given up and by the text of their last failure.
/// In the texts, numbers, UUIDs and quoted parts are made `#`, so that one cause is one group; the status of an answer, as in `http 422`,
/// and the number of an `os error` stay. `tickwheel redrive QUEUE --group-id ID` makes the tasks of a group ready again, and `tickwheel cancel QUEUE --state dead --group-id ID` removes them.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel dead close
  tickwheel dead close --groups
  tickwheel dead close --failure \"card refused\" --all -o json | jq -r .key")]
pub(crate) struct Dead {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// Group the tasks by their causes of death
    #[arg(long, conflicts_with_all = ["limit", "all"], conflicts_with_all = DEAD_FILTER)]
    groups: bool,
    #[command(flatten)]
    conditions: Conditions,
    #[command(flatten)]
    dead: OfDead,
    /// The largest number of tasks to list
    #[arg(long, value_name = "N", default_value = "100", value_parser = values::limit)]
    limit: usize,
    /// List all dead tasks, without a limit
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Dead {
    /// Prints the tasks or the groups.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.groups {
            return self.print_groups();
        }
        let client = self.remote.client()?;
        let filter = self.dead.added_to(self.conditions.wanted());
        let limit = if self.all { usize::MAX } else { self.limit };
        let mut listing = Listing::of_dead(&client, self.queue, filter, limit);
        let (mut tasks, mut is_empty) = (Vec::new(), true);
        while let Some(page) = listing.next_page()? {
            is_empty &= page.is_empty();
            let page = page.into_iter().map(DeadTask);
            if self.format.is_json() {
                // Pages are printed as they come: the list may be larger than the memory.
                self.format.print(page)?;
            } else {
                tasks.extend(page);
            }
        }
        if is_empty {
            missing::check(&client, listing.queue())?;
        }
        if !self.format.is_json() {
            if tasks.is_empty() {
                say("no dead tasks");
            } else {
                self.format.print(tasks)?;
            }
        }
        if let Some(more) = listing.more() {
            say(&more);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn print_groups(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let found = client.dead_groups(&self.queue)?;
        let tasks = found.looked_at;
        if found.groups.is_empty() {
            missing::check(&client, &self.queue)?;
            say("no dead tasks");
            return Ok(ExitCode::SUCCESS);
        }
        let queue = &self.queue;
        self.format.print(found.groups.into_iter().map(|group| Group { queue: queue.clone(), group }))?;
        match found.window {
            DeadWindow::All => {}
            DeadWindow::Newest => say(&format!("these are the newest {tasks} dead tasks; there are others")),
            DeadWindow::Part => say(&format!("these are {tasks} of the dead tasks, and not the newest ones")),
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A dead task in a list.
struct DeadTask(TaskBody);

impl Row for DeadTask {
    const HEADER: &'static [&'static str] =
        &["QUEUE", "KEY", "ID", "DEAD AT", "REASON", "ATTEMPTS", "FAILURE"];

    fn json(&self) -> Vec<u8> {
        self.0.json()
    }

    fn cells(&self) -> Vec<String> {
        let TaskBody { queue, key, id, dead, attempt, failures, .. } = &self.0;
        let failure =
            failures.last().map(|last| last.reason.clone().unwrap_or_else(|| last.how.name().to_owned()));
        vec![
            queue.clone(),
            key.clone(),
            id.to_string(),
            dead.map_or(String::new(), |dead| time::format(dead.at_ms)),
            dead.map_or("", |dead| dead.reason.name()).to_owned(),
            attempt.to_string(),
            failure.unwrap_or_default(),
        ]
    }
}

/// A group, and its queue.
#[derive(Serialize)]
struct Group {
    queue: String,
    #[serde(flatten)]
    group: DeadGroupBody,
}

impl Row for Group {
    const HEADER: &'static [&'static str] =
        &["GROUP", "TASKS", "REASON", "LAST FAILURE", "FIRST", "LAST", "EXAMPLE"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let DeadGroupBody { id, reason, how, failure, count, first_ms, last_ms, examples } = &self.group;
        let text = if failure.is_empty() { how.map_or("", FailureKind::name) } else { failure };
        vec![
            id.clone(),
            count.to_string(),
            DeathReason::name(*reason).to_owned(),
            text.to_owned(),
            time::format(*first_ms),
            time::format(*last_ms),
            examples.first().map_or(String::new(), |example| example.key.clone()),
        ]
    }
}
