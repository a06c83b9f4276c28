//! `tickwheel extend`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::ExtendBody;

use super::tokens;
use crate::output::Format;
use crate::remote::Remote;
use crate::values;

/// Make leases end later
///
/// The exit code is 1 if the lease of one of the tokens had ended already.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  tickwheel extend close TOKEN --for 5m")]
pub(crate) struct Extend {
    /// The queue that the tasks were leased from
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The tokens that `lease` printed
    #[arg(required = true, value_name = "TOKEN", value_parser = values::token)]
    tokens: Vec<String>,
    /// The time from now until the leases end, 1s to 12h [default: the queue's setting, or else 30s]
    #[arg(long = "for", visible_alias = "lease", value_name = "DURATION", value_parser = values::lease, allow_hyphen_values = true)]
    lease_ms: Option<u64>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Extend {
    /// Sends the tokens and prints the result of each.
    ///
    /// # Errors
    /// There is no server.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        tokens::settle(&self.format, self.tokens, |tokens| {
            Ok(client.extend(&self.queue, &ExtendBody { tokens, lease_ms: self.lease_ms })?)
        })
    }
}
