//! The selection of tasks in a queue: one by its key, or all that a filter finds.

use clap::Args;

use crate::cli::Cli;
use crate::filter::{FILTER, Filter};
use crate::output::Format;
use crate::remote::Remote;
use crate::values;

/// The arguments that `cancel` and `move` share.
#[derive(Args, Debug)]
pub(super) struct Which {
    /// The queue
    #[arg(value_parser = values::queue)]
    pub(super) queue: String,
    /// The task's key
    #[arg(value_parser = values::key, conflicts_with_all = FILTER)]
    key: Option<String>,
    /// Only if the task has this version
    #[arg(long, value_name = "VERSION", value_parser = values::version, conflicts_with = "all", conflicts_with_all = FILTER)]
    pub(super) if_match: Option<u64>,
    /// Every task that is not dead
    #[arg(long, conflicts_with = "key", conflicts_with_all = FILTER)]
    all: bool,
    #[command(flatten)]
    pub(super) filter: Filter,
    /// Change no task, and print how many tasks would be changed
    #[arg(long, conflicts_with = "key")]
    pub(super) dry_run: bool,
    /// Also change leased tasks, and take them from their workers
    #[arg(long)]
    pub(super) revoke: bool,
    #[command(flatten)]
    pub(super) remote: Remote,
    #[command(flatten)]
    pub(super) format: Format,
}

impl Which {
    /// The key of the single task; `None`: all tasks that the filter finds. Ends the program if the command line has neither a key nor a
    /// filter nor `--all`.
    pub(super) fn key(&self, subcommand: &str) -> Option<String> {
        if self.key.is_none() && !self.all && self.filter.is_empty() {
            let what = "which tasks? give a key, or a filter (--tag, --group, --key-contains, --state, --due-from, --due-to), or --all for every task";
            Cli::misused(subcommand, format!("{what} of {}", self.queue));
        }
        self.key.clone()
    }
}
