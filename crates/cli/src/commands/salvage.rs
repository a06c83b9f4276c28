//! `tickwheel salvage`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use tickwheel_queue::backup::salvage;

use super::backup::warn_of_others;
use crate::output::Format;
use crate::salvage::{Report, Talk};

/// The exit code if the new directory is complete and some data is lost.
const WITH_LOSSES: u8 = 3;

/// Make a new data directory of everything that can be read from a damaged one
///
/// A restore returns everything in a backup. A salvage also returns tasks that are newer than the backup, but not damaged tasks. Everything
/// with a correct checksum is saved, with its id, version, attempts and history. The command prints each loss: the file, the bytes, and the
/// tasks in it, by their key if a record has the key. It also prints whether the new directory may have tasks that had ended already,
/// because the record of their end is lost. Of a directory of several shards, every shard is salvaged; a shard of which nothing can be read
/// is a loss, and is empty in OUT.
///
/// DIR is not changed. No server may use it, and none can start on it meanwhile. The new directory is synced, and every record of it is
/// read and checked before it gets its name; until then it is called OUT.unfinished. The exit code is 0 if nothing is lost, 3 if OUT is
/// complete and something is lost, and 1 if there is no OUT.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel salvage ./tickwheel-data ./tickwheel-salvaged
  tickwheel serve --data ./tickwheel-salvaged                    the way back to work
  tickwheel salvage ./tickwheel-data ./tickwheel-salvaged -o json | jq '.losses[].tasks[] | select(.fate == \"lost\")'")]
pub(crate) struct Salvage {
    /// The damaged data directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The new data directory: absent, or an empty directory
    #[arg(value_name = "OUT")]
    out: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Salvage {
    /// Reads the old directory, writes the new one and prints the report.
    ///
    /// # Errors
    /// DIR cannot be read, or OUT cannot be written. In both cases no new directory is made.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Self { directory, out, format } = self;
        warn_of_others(&directory);
        let mut talk = Talk::default();
        let report =
            salvage(&directory, &out, &mut |progress| talk.told(progress)).context("failed to salvage")?;
        let whole = report.is_whole();
        Report::new(&directory, &out, &report).print(&format)?;
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(WITH_LOSSES) })
    }
}
