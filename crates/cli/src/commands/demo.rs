//! `tickwheel demo`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::demo;

/// Watch a shop run on a real server that is killed with SIGKILL in the middle
///
/// Orders are closed after 30 minutes unless they are paid; a minute of the shop lasts 100 ms. The demo starts its own server on a
/// temporary directory, and places, pays and closes orders over HTTP. It kills the server with SIGKILL while calls are under way, and
/// starts it again. The demo records what became of each order, and prints the account at the end: no order lost, no order closed early. It
/// takes less than 20 seconds and leaves no files behind. The exit code is 1 if a promise was broken.
///
/// While it runs, the console at the printed address shows its tasks in a browser. With --watch the server stays after the account, so that
/// you can look around.
#[derive(Args, Debug)]
pub(crate) struct Demo {
    /// Keep the server after the account, until Ctrl-C or SIGTERM comes. It has the default port 8463 if that is free
    #[arg(long)]
    watch: bool,
}

impl Demo {
    /// Runs the demo.
    ///
    /// # Errors
    /// The server does not start, or Ctrl-C was pressed.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let kept = demo::play(self.watch)?;
        Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
