//! `tickwheel find`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::output::{Format, say};
use crate::remote::Remote;
use crate::values;

/// Find the tasks with one key in all queues
///
/// The command lists live and dead tasks. The exit code is 1 if no queue has a task with this key. At most 10,000 queues are looked into;
/// the command says if there are others.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel find order:1
  tickwheel find order:1 -o json | jq -r .queue")]
pub(crate) struct Find {
    /// The key
    #[arg(value_parser = values::key)]
    key: String,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Find {
    /// Prints the tasks.
    ///
    /// # Errors
    /// There is no server.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let found = self.remote.client()?.tasks_of_key(&self.key)?;
        let is_found = !found.tasks.is_empty();
        if is_found {
            self.format.print(found.tasks)?;
        } else {
            say(&format!("no queue has a task with the key `{}`; keys are case-sensitive", self.key));
        }
        if found.truncated {
            say("there are more queues or tasks than one call finds; this list has a part of them");
        }
        Ok(if is_found { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
