//! `tickwheel drain` and `tickwheel resume`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::DrainBody;

use crate::output::{Format, Row};
use crate::remote::Remote;

/// Make a server refuse new tasks in all queues
///
/// Puts are refused. Leases, acks and schedules go on, so that workers can finish the tasks that exist. `tickwheel resume` or a restart of
/// the server ends the drain. To drain one queue only: `tickwheel queues drain QUEUE`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel drain                                   before another server takes over
  tickwheel resume                                  new tasks are taken again")]
pub(crate) struct Drain {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

/// End the drain of a server: it takes new tasks again
///
/// A queue that drains by its own setting goes on draining: `tickwheel queues resume QUEUE` ends that.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel resume")]
pub(crate) struct Resume {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Drain {
    /// Drains the server and prints its state.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.format.print([self.remote.client()?.drain_server()?])?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Resume {
    /// Ends the drain of the server and prints its state.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        self.format.print([self.remote.client()?.resume_server()?])?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Row for DrainBody {
    const HEADER: &'static [&'static str] = &["SERVER"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let state = if self.draining { "draining: no new tasks are taken" } else { "takes new tasks" };
        vec![state.to_owned()]
    }
}
