//! `tickwheel demo`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::demo;

/// Watch a shop run on a real server that is killed with SIGKILL in the middle
///
/// Orders are to be closed after 30 minutes unless they are paid, and a minute lasts 100 ms. The demo starts a server of its
/// own on a temporary directory, places and pays orders and closes the unpaid ones over HTTP, kills the server with SIGKILL
/// while calls are under way, and starts it again. It knows what became of each order and ends with the account: nothing lost,
/// nothing early. It takes under 20 seconds and leaves nothing behind. The exit code is 1 if a promise was broken.
#[derive(Args, Debug)]
pub(crate) struct Demo {}

impl Demo {
    /// Runs the demo.
    ///
    /// # Errors
    /// The server does not start, or Ctrl-C was pressed.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let kept = demo::play()?;
        Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
