//! `tickwheel run`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::ProblemKind;
use tickwheel_client::ClientError;

use super::patch::OneTask;
use crate::output::Format;
use crate::remote::Remote;

/// Make a task due now
///
/// The command changes the due time only; payload, tags, priority and the later instants of a timeline stay. A task that is ready stays
/// as it is.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel run close order:1
  tickwheel run close order:1 --if-match 41    only if it still is what I saw")]
pub(crate) struct Run {
    #[command(flatten)]
    task: OneTask,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Run {
    /// Sends the call and prints the task.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let OneTask { queue, key, if_match, revoke } = self.task;
        let client = self.remote.client()?;
        let task = match client.run(&queue, &key, if_match) {
            Err(ClientError::Problem(problem)) if revoke && problem.kind() == Some(ProblemKind::Leased) => {
                client.release(&queue, &key, if_match)
            }
            answer => answer,
        }?;
        self.format.print([task])?;
        Ok(ExitCode::SUCCESS)
    }
}
