//! Options of `serve` about the backups that it makes of itself.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use tickwheel_server::{BackupPlan, events};

use crate::values;

/// The place of backups, the time between two, and the number that stay.
#[derive(Args, Debug)]
pub(crate) struct BackupOptions {
    /// Where backups of the running server go: a directory of its own, outside of the data directory, made if it is not there
    ///
    /// `tickwheel backup --server URL` and `POST /v1/backups` begin one. Put it on another disk if there is one
    #[arg(long, value_name = "DIR", env = "TICKWHEEL_BACKUP_DIR")]
    backup_dir: Option<PathBuf>,
    /// Make a backup this often, 1s to 366d, by the clock of the system; after a restart it goes on from the newest one
    ///
    /// One that is due while another is under way is left out; after a failure the next attempt comes within 10 minutes. The check of a backup
    /// takes as much memory as a start of the server: leave that much free
    #[arg(long, value_name = "TIME", env = "TICKWHEEL_BACKUP_EVERY", value_parser = values::backup_every)]
    backup_every: Option<u64>,
    /// Keep this many whole backups of this data directory, however they were begun: the oldest goes once a newer one is whole; all stay without it
    ///
    /// Only backups of this data directory are counted and removed, by their names and their backup.json: rename one to keep it
    #[arg(long, value_name = "N", env = "TICKWHEEL_BACKUP_KEEP", value_parser = values::places)]
    backup_keep: Option<usize>,
}

impl BackupOptions {
    /// The plan that the options describe.
    ///
    /// # Errors
    /// There is a schedule for backups, but no directory.
    pub(crate) fn plan(&self) -> Result<Option<BackupPlan>> {
        let Some(directory) = self.backup_dir.clone() else {
            if self.backup_every.is_some() || self.backup_keep.is_some() {
                bail!(
                    "there is no place for backups; add --backup-dir, or leave out --backup-every and --backup-keep"
                );
            }
            return Ok(None);
        };
        let every = self.backup_every.map(Duration::from_millis);
        Ok(Some(BackupPlan { directory, every, keep: self.backup_keep.and_then(NonZeroUsize::new) }))
    }

    /// Warns of options that have no effect.
    pub(crate) fn warn(&self, in_memory: bool) {
        if in_memory && self.backup_dir.is_some() {
            tracing::warn!(
                event = events::DOUBTFUL,
                "--backup-dir is ignored, because --memory keeps tasks in memory"
            );
        } else if self.backup_every.is_some() && self.backup_keep.is_none() {
            tracing::warn!(
                event = events::DOUBTFUL,
                "no backup is ever removed, so the disk fills in time; set --backup-keep N"
            );
        }
    }
}
