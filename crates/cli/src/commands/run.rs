//! `tickwheel run`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{Due, PatchBody};

use super::patch::OneTask;
use crate::output::Format;
use crate::remote::Remote;

/// Make a task due now
///
/// The command changes the due time only; payload, tags and priority stay. A ready task stays ready; it goes behind the tasks that were due
/// before now.
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
    /// Sends the patch and prints the task.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let body = PatchBody { due: Some(Due::Now), ..PatchBody::default() };
        self.task.send(&self.remote, &self.format, &body)
    }
}
