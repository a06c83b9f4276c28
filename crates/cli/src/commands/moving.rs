//! `tickwheel move`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{Due, PatchBody};

use super::patch::OneTask;
use crate::output::Format;
use crate::remote::Remote;
use crate::values;

/// Give a task another time; all else of it stays
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel move close order:1 --in 30m
  tickwheel move close order:1 --at 2030-01-01T08:00:00+01:00 --if-match 41    only if it still is what I saw
  tickwheel move close order:1 --in 30m --revoke                             also if a worker has it")]
pub(crate) struct Move {
    #[command(flatten)]
    task: OneTask,
    #[command(flatten)]
    to: To,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct To {
    /// Due so long from now, such as 250ms, 30m, 1h30m or 15d
    #[arg(long = "in", value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true)]
    delay_ms: Option<u64>,
    /// Due at this time, RFC 3339 or milliseconds since 1970
    #[arg(long = "at", value_name = "TIME", value_parser = values::instant, allow_hyphen_values = true)]
    at_ms: Option<i64>,
}

impl Move {
    /// Sends it and prints the task.
    ///
    /// # Errors
    /// No server, or a refusal.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let due = self.to.delay_ms.map(Due::After).or(self.to.at_ms.map(Due::At));
        let body = PatchBody { due, ..PatchBody::default() };
        self.task.send(&self.remote, &self.format, &body)
    }
}
