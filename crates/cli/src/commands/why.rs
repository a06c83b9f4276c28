//! `tickwheel why`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::output::print_line;
use crate::remote::Remote;
use crate::values;

/// Say in one sentence why a task does not run now
///
/// The sentence names what the task waits for, or what has become of it: its due time, a pause or a limit of its queue, a worker, or its death.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel why close order:1")]
pub(crate) struct Why {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The task's key
    #[arg(value_parser = values::key)]
    key: String,
    #[command(flatten)]
    remote: Remote,
}

impl Why {
    /// Asks for the story and prints its sentence.
    ///
    /// # Errors
    /// There is no server, or there is no such task.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let story = self.remote.client()?.story(&self.queue, &self.key)?;
        print_line(&story.why)?;
        Ok(ExitCode::SUCCESS)
    }
}
