//! `tickwheel nack`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::NackBody;

use super::tokens;
use crate::output::Format;
use crate::remote::Remote;
use crate::values;

/// Give leased tasks back: their work is not done
///
/// The task waits for the time of --in, or else as its retry policy says; with neither, it is ready again at once. The exit code is 1 if
/// the lease of one of the tokens had ended already.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  tickwheel nack mail TOKEN --in 5m --reason 'the mail server is down'")]
pub(crate) struct Nack {
    /// The queue that the tasks were leased from
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The tokens that `lease` printed
    #[arg(required = true, value_name = "TOKEN", value_parser = values::token)]
    tokens: Vec<String>,
    /// The time from now until the task is due again [default: as its retry policy says]
    #[arg(long = "in", value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true)]
    delay_ms: Option<u64>,
    /// The reason; the task's owner can read it
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Nack {
    /// Sends the tokens and prints the result of each.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        tokens::settle(&self.format, self.tokens, |tokens| {
            let body = NackBody { tokens, delay_ms: self.delay_ms, reason: self.reason.clone() };
            Ok(client.nack(&self.queue, &body)?)
        })
    }
}
