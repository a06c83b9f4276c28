//! `tickwheel ack`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use super::tokens;
use crate::output::Format;
use crate::remote::Remote;
use crate::values;

/// Say that the work of a lease is done
///
/// The task is done and is never delivered again. The exit code is 1 if the lease of one of the tokens had ended already.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  tickwheel lease close -o json | jq -r .token | xargs -r tickwheel ack close")]
pub(crate) struct Ack {
    /// The queue that the tasks were leased from
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The tokens that `lease` printed
    #[arg(required = true, value_name = "TOKEN", value_parser = values::token)]
    tokens: Vec<String>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Ack {
    /// Sends the tokens and prints the result of each.
    ///
    /// # Errors
    /// There is no server.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        tokens::settle(&self.format, self.tokens, |tokens| Ok(client.ack(&self.queue, tokens)?))
    }
}
