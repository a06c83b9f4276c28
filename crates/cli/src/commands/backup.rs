//! `tickwheel backup`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use tickwheel_queue::backup::{BackupReport, backup};

use crate::output::say;

/// Copy the data directory of a stopped server
///
/// The copy has what a start needs and no more, is synced, and every record of it is read and checked before it gets its name; until then
/// it is called TO.unfinished. A program that embeds the queue can copy while it runs: `Queue::backup`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel backup ./tickwheel-data /backup/monday
  tickwheel restore /backup/monday ./tickwheel-data")]
pub(crate) struct Backup {
    /// The data directory; no server may be running on it
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where the copy goes: absent, or an empty directory
    #[arg(value_name = "TO")]
    to: PathBuf,
}

impl Backup {
    /// Copies.
    ///
    /// # Errors
    /// What is wrong with either place.
    pub(crate) fn run(self) -> Result<ExitCode> {
        warn_of_others(&self.directory);
        let report = backup(&self.directory, &self.to).context("failed to back up")?;
        say(&told(report, &self.to));
        Ok(ExitCode::SUCCESS)
    }
}

/// Says it if others may change what is copied.
pub(super) fn warn_of_others(directory: &std::path::Path) {
    if let Some(warning) = tickwheel_queue::warning_of_others(directory) {
        say(&format!("warning: {warning}"));
    }
}

/// What was copied, in a line.
pub(super) fn told(report: BackupReport, to: &std::path::Path) -> String {
    let BackupReport { files, bytes, .. } = report;
    format!("{files} files, {} copied to {} and checked", indicatif::HumanBytes(bytes), to.display())
}
