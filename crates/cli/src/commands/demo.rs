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
/// With --postgres the tasks are in PostgreSQL. The demo makes a database for itself, with a name of its own, and removes it at the end. It
/// touches no other database.
///
/// While it runs, the console at the printed address shows its tasks in a browser. With --watch the server stays after the account, so that
/// you can look around.
#[derive(Args)]
#[command(after_help = "\
Examples:
  tickwheel demo
  tickwheel demo --watch
  tickwheel demo --postgres postgres://postgres@127.0.0.1/postgres")]
pub(crate) struct Demo {
    /// Keep the server after the account, until Ctrl-C or SIGTERM comes. It has the default port 8463 if that is free
    #[arg(long)]
    watch: bool,
    /// Keep the tasks in a new database on this PostgreSQL instead of a directory, such as postgres://postgres@127.0.0.1/postgres
    ///
    /// The role needs the right to make databases (`ALTER ROLE ... CREATEDB`). The database is called tickwheel_demo_ and 12 digits. If the
    /// demo itself is killed with SIGKILL, it cannot remove the database. Parts that the URL leaves out come from the variables of psql, such
    /// as PGPASSWORD, and from ~/.pgpass
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
}

/// The URL may have a password, so it is not shown.
impl std::fmt::Debug for Demo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { watch, postgres: _ } = self;
        f.debug_struct("Demo").field("watch", watch).finish_non_exhaustive()
    }
}

impl Demo {
    /// Runs the demo.
    ///
    /// # Errors
    /// The server does not start, or Ctrl-C was pressed.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let kept = demo::play(self.watch, self.postgres.as_deref())?;
        Ok(if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
