//! `tickwheel health`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::ReadyBody;

use crate::output::{Format, Row};
use crate::remote::Remote;

/// Ask a server whether it is ready for work
///
/// The exit code is 0 if the server takes leases and acks, and 1 if it does not, or does not answer. A container's health check needs no
/// other program. If the server has tokens, only a caller with a token that has `read` sees the reasons.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel health
  tickwheel health --server https://tasks.example:8463 --ca-file ca.pem
  until tickwheel health; do sleep 1; done          wait for a server that starts")]
pub(crate) struct Health {
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Health {
    /// Prints the state of the server.
    ///
    /// # Errors
    /// There is no server, or its answer makes no sense.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let body = self.remote.client()?.health()?;
        let code = if body.ready { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        self.format.print([body])?;
        Ok(code)
    }
}

impl Row for ReadyBody {
    const HEADER: &'static [&'static str] = &["SERVER", "STATUS", "WHY"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let ready = if self.ready { "ready" } else { "not ready" };
        vec![ready.to_owned(), self.status.name().to_owned(), self.why.clone().unwrap_or_default()]
    }
}
