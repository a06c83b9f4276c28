//! `tickwheel release`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::output::Format;
use crate::remote::Remote;
use crate::values;

/// Take a leased task from its worker
///
/// The task is ready at once, at its old place in the order, and the next worker gets it. The attempt counts, but it never makes the task dead.
/// The worker that had the task is told `revoked` when it acks or extends.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel release close order:1
  tickwheel release close order:1 --if-match 41    only if it still is what I saw")]
pub(crate) struct Release {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The task's key
    #[arg(value_parser = values::key)]
    key: String,
    /// Release it only if the task has this version
    #[arg(long, value_name = "VERSION", value_parser = values::version)]
    if_match: Option<u64>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Release {
    /// Sends the call and prints the task.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let task = self.remote.client()?.release(&self.queue, &self.key, self.if_match)?;
        self.format.print([task])?;
        Ok(ExitCode::SUCCESS)
    }
}
