//! Options of `serve` about the backups that it makes of itself.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use tickwheel_server::{BackupPlan, events};

use crate::values;

/// The directory for backups, the time between two backups, and the number of backups to keep.
#[derive(Args, Debug)]
#[command(next_help_heading = "Backups")]
pub(crate) struct BackupOptions {
    /// The directory for backups of the running server. It must be outside of the data directory; it is made if it does not exist
    ///
    /// `tickwheel backup --server URL` and `POST /v1/backups` begin a backup. Use another disk if there is one
    #[arg(long, value_name = "DIR", env = "TICKWHEEL_BACKUP_DIR")]
    backup_dir: Option<PathBuf>,
    /// Make a backup at this interval, 1s to 366d, by the wall clock; after a restart the interval counts from the newest backup
    /// [default: only on request]
    ///
    /// A backup that is due while another one runs is left out. After a failure the next attempt comes within 10 minutes. The check of a
    /// backup takes as much memory as a start of the server: leave that much memory free
    #[arg(long, value_name = "DURATION", env = "TICKWHEEL_BACKUP_EVERY", value_parser = values::backup_every)]
    backup_every: Option<u64>,
    /// Keep this many complete backups, and remove the oldest ones once a newer one is complete [default: all backups stay]
    ///
    /// Only backups of this data directory are counted and removed; their names and their backup.json identify them. Rename a backup to
    /// keep it
    #[arg(long, value_name = "N", env = "TICKWHEEL_BACKUP_KEEP", value_parser = values::places)]
    backup_keep: Option<usize>,
}

impl BackupOptions {
    /// The plan that the options describe.
    ///
    /// # Errors
    /// A schedule for backups is set, but no directory for them.
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

    /// Whether a place for backups is given.
    pub(crate) fn is_given(&self) -> bool {
        self.backup_dir.is_some()
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
