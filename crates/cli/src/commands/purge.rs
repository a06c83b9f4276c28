//! `tickwheel purge`.

use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use tickwheel_api::{JobAction, PurgeAnswer, PurgeBody};
use tickwheel_client::blocking::Client;

use super::many::{self, Many};
use crate::cli::Cli;
use crate::output::{Format, say};
use crate::remote::Remote;
use crate::values;

/// Remove all tasks of a queue, live and dead
///
/// The queue's settings and schedules stay. Leased tasks stay with their workers unless --revoke is given; if a task stays, the exit code
/// is 1. On a terminal the command asks before it removes anything; elsewhere it needs --yes.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel purge close --dry-run
  tickwheel purge close
  tickwheel purge close --revoke --yes")]
pub(crate) struct Purge {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// Remove nothing, and print the number of tasks
    #[arg(long)]
    dry_run: bool,
    /// Also remove leased tasks, and take them from their workers
    #[arg(long)]
    revoke: bool,
    /// Do not ask for confirmation
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

impl Purge {
    /// Asks for confirmation, sends the purge and prints the number of tasks.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { queue, dry_run, revoke, yes, remote, format } = self;
        let client = remote.client()?;
        if !dry_run && !yes {
            if !io::stdin().is_terminal() {
                Cli::misused(
                    "purge",
                    format!("it removes all tasks of {queue}, and there is no terminal to ask at: add --yes"),
                );
            }
            if !is_meant(&client, &queue)? {
                say("nothing was removed");
                return Ok(ExitCode::FAILURE);
            }
        }
        let many = |PurgeAnswer { matched, purged, skipped }| Many {
            queue: queue.clone(),
            action: JobAction::Purge,
            dry_run,
            matched,
            done: purged,
            skipped,
        };
        let answered = client.purge(&queue, PurgeBody { dry_run, revoke })?.map(many);
        many::finish(&client, &format, answered)
    }
}

/// Shows the number of tasks, and asks for confirmation.
fn is_meant(client: &Client, queue: &str) -> Result<bool> {
    let counts = client.queue(queue)?.counts;
    let live = counts.scheduled + counts.ready + counts.leased;
    let mut stderr = io::stderr().lock();
    write!(stderr, "remove {live} live and {} dead tasks of {queue}? [y/N] ", counts.dead)
        .and_then(|()| stderr.flush())
        .context("ask")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("read the answer")?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}
