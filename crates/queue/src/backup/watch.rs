//! [`BackupWatch`]: shows the progress of a backup, and stops the backup.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tickwheel_engine::Timestamp;

use super::report::BackupError;

/// The phase of a backup.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum BackupPhase {
    /// The backup copies the files, or has not begun.
    #[default]
    Copying,
    /// The backup reads the copy back and checks every record.
    Checking,
}

/// The progress of a backup.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BackupProgress {
    /// The present phase.
    pub phase: BackupPhase,
    /// The backup has everything that was acknowledged before this instant; `None` until the files are pinned.
    pub as_of: Option<Timestamp>,
    /// The number of files to copy; 0 until the files are pinned.
    pub files: u64,
    /// The size of the files to copy (bytes); 0 until the files are pinned.
    pub bytes: u64,
    /// Bytes that are copied so far.
    pub copied: u64,
    /// Bytes of the copy that the check has read so far, never more than `bytes`.
    pub checked: u64,
}

/// Shows the progress of one backup to other threads, and stops the backup. All clones belong to the same backup; make a new watch for each
/// backup.
///
/// The thread of the backup writes the progress, and any thread may read it. Any thread may set `stopped`, and the thread of the backup
/// reads `stopped` between two pieces. No other memory depends on `stopped`, so `Relaxed` is enough.
#[derive(Clone, Debug, Default)]
pub struct BackupWatch(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    stopped: AtomicBool,
    /// An examination reads some parts twice, so `checked` may be more than `bytes` in this value.
    progress: Mutex<BackupProgress>,
}

impl BackupWatch {
    /// Returns a watch for one backup that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the backup to stop. The backup ends with [`BackupError::Stopped`] after the present piece, and its unfinished copy is removed.
    /// A stop while the copy gets its final name has no effect.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns the progress of the backup.
    #[must_use]
    pub fn progress(&self) -> BackupProgress {
        let progress = *self.lock();
        BackupProgress { checked: progress.checked.min(progress.bytes), ..progress }
    }

    fn lock(&self) -> MutexGuard<'_, BackupProgress> {
        self.0.progress.lock().expect("no thread panics while it holds the progress")
    }

    /// Notes the instant at which the files were pinned.
    pub(super) fn held(&self, as_of: Timestamp) {
        // The copy has everything that was acknowledged before the first pin.
        self.lock().as_of.get_or_insert(as_of);
    }

    /// Notes that this many more files and bytes are to be copied. The backup of several shards copies one shard after the other.
    pub(super) fn begins(&self, files: u64, bytes: u64) {
        let mut progress = self.lock();
        progress.files += files;
        progress.bytes += bytes;
    }

    /// Notes that this many more bytes (`bytes`) are copied, and checks that the backup may go on.
    ///
    /// # Errors
    /// [`BackupError::Stopped`]: the backup was told to stop.
    pub(super) fn copied(&self, bytes: u64) -> Result<(), BackupError> {
        self.lock().copied += bytes;
        self.go_on()
    }

    /// Notes that the files of another shard are copied.
    pub(super) fn copies(&self) {
        self.lock().phase = BackupPhase::Copying;
    }

    /// Notes that everything is copied and that the check begins.
    pub(super) fn checks(&self) {
        self.lock().phase = BackupPhase::Checking;
    }

    /// Notes that the check has read this many more bytes.
    pub(super) fn checked(&self, bytes: u64) {
        self.lock().checked += bytes;
    }

    /// Checks that the backup may go on.
    ///
    /// # Errors
    /// [`BackupError::Stopped`]: the backup was told to stop.
    pub(super) fn go_on(&self) -> Result<(), BackupError> {
        if self.is_stopped() { Err(BackupError::Stopped) } else { Ok(()) }
    }

    /// Whether the backup was told to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_shows_what_the_backup_says_and_stops_it() {
        let watch = BackupWatch::new();
        assert_eq!(watch.progress(), BackupProgress::default());
        let as_of = Timestamp::from_ms(7).expect("after 1970");
        watch.held(as_of);
        watch.begins(3, 100);
        watch.copied(60).expect("nothing stops it");
        let shown = watch.clone().progress();
        assert_eq!((shown.phase, shown.as_of, shown.copied), (BackupPhase::Copying, Some(as_of), 60));
        watch.checks();
        // An examination reads some parts twice.
        watch.checked(70);
        watch.checked(70);
        assert_eq!((watch.progress().phase, watch.progress().checked), (BackupPhase::Checking, 100));
        watch.clone().stop();
        assert!(matches!(watch.copied(1), Err(BackupError::Stopped)));
    }
}
