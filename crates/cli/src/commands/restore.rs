//! `tickwheel restore`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use tickwheel_queue::backup::restore;

use super::backup::{told, warn_of_others};
use crate::output::say;

/// Make a data directory from a backup
///
/// Every record of the backup is read and checked before the copy, and every record of the copy after it. A backup that is damaged, or that
/// has links or unknown files, is refused. If the backup has a manifest (`backup.json`), each byte and each count is compared with it. The
/// command prints how many tasks the copy has, and the instant that the copy shows. The backup is not changed.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel restore /backup/monday ./tickwheel-data
  tickwheel serve --data ./tickwheel-data")]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_name = "FROM")]
    from: PathBuf,
    /// The new data directory: absent, or an empty directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Restore {
    /// Copies the backup to the new directory.
    ///
    /// # Errors
    /// The backup or the target is not usable.
    pub(crate) fn run(self) -> Result<ExitCode> {
        warn_of_others(&self.from);
        let report = restore(&self.from, &self.directory).context("failed to restore")?;
        say(&told(report, &self.directory));
        say(match report.as_of {
            Some(_) => "verified: the files of the backup and the counts of the copy match backup.json",
            None => "not verified: the backup has no backup.json to compare it with",
        });
        Ok(ExitCode::SUCCESS)
    }
}
