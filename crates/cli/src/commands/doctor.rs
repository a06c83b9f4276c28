//! `tickwheel doctor`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use tickwheel_queue::backup::{Manifest, check_found};
use tickwheel_queue::doctor::{Depth, examine_dir};
use tickwheel_queue::warning_of_others;
use tickwheel_server::KeyUse;

use crate::doctor::Report;
use crate::output::{Format, say};

/// Examine a data directory: what is in it, and whether it is intact
///
/// The command changes nothing, so it may run at any time, also while a server uses the directory. It reports every problem with the file,
/// the offset and a way to repair it. A backup is compared with its own manifest (`backup.json`); with --deep, every byte of it is
/// compared. Of a directory of several shards, every shard is examined. The exit code is 0 if no problem was found, and 1 if something is damaged or cannot be read.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel doctor ./tickwheel-data
  tickwheel doctor --deep /backup/tickwheel                      reads and checks every record
  tickwheel doctor ./tickwheel-data -o json | jq .problems
  tickwheel doctor ./tickwheel-data --secret-key-file secret-keys")]
pub(crate) struct Doctor {
    /// The data directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Read and check every record; without this option, only what a start of a server reads
    #[arg(long)]
    deep: bool,
    /// The file with the keys that encrypt the secrets of targets. A key that targets need and the file lacks is a problem
    #[arg(long, value_name = "FILE", env = "TICKWHEEL_SECRET_KEY_FILE")]
    secret_key_file: Option<PathBuf>,
    #[command(flatten)]
    format: Format,
}

impl Doctor {
    /// Examines the directory and prints the report.
    ///
    /// # Errors
    /// There is no such directory.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { directory, deep, secret_key_file, format } = self;
        let depth = if deep { Depth::Records } else { Depth::Opening };
        let found = examine_dir(&directory, depth).context("failed to examine a data directory")?;
        let differs = check_found(&directory, &found, deep).err();
        let backup = Manifest::read(&directory).ok().flatten();
        let targets = found.targets.iter().map(|(queue, target)| (queue, &**target));
        let keys = KeyUse::of(targets, secret_key_file.as_deref());
        if let Some(warning) = warning_of_others(&directory) {
            say(&format!("warning: {warning}"));
        }
        if found.in_use {
            say("a running process uses this directory, so the figures may change");
        }
        let report = Report::new(&directory, &found)
            .of_backup(backup.as_ref(), differs.as_ref())
            .with_keys(&keys, secret_key_file.as_deref());
        let in_order = report.is_in_order();
        report.print(&format)?;
        Ok(if in_order { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
