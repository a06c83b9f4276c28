//! [`BackupWatch`]: how far a backup is, and the way to stop it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tickwheel_engine::Timestamp;

use super::report::BackupError;

/// The phase of a backup.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum BackupPhase {
    /// The backup copies the files.
    #[default]
    Copying,
    /// The backup reads the copy back and checks every record.
    Checking,
}

/// How far a backup is.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BackupProgress {
    /// The present phase.
    pub phase: BackupPhase,
    /// The backup has everything that was acknowledged before this instant; `None` until the files are pinned.
    pub as_of: Option<Timestamp>,
    /// Files in all; 0 until they are known.
    pub files: u64,
    /// Bytes in all; 0 until they are known.
    pub bytes: u64,
    /// Bytes that are copied and synced.
    pub copied: u64,
    /// Bytes of the copy that were read again, never more than `bytes`.
    pub checked: u64,
}

/// Follows one backup from other threads, and stops it. All clones follow the same one; make a new one for each backup.
///
/// The thread of the backup writes the figures, and every thread reads them. Any thread sets `stopped`, and the thread of the backup reads
/// it between two pieces. No other memory depends on it, so `Relaxed` will do.
#[derive(Clone, Debug, Default)]
pub struct BackupWatch(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    stopped: AtomicBool,
    /// An examination reads some parts twice, so `checked` may be more than `bytes` here.
    progress: Mutex<BackupProgress>,
}

impl BackupWatch {
    /// A watch for one backup that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the backup to stop. It ends with [`BackupError::Stopped`] after the present piece, and leaves nothing behind.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }

    /// How far the backup is.
    #[must_use]
    pub fn progress(&self) -> BackupProgress {
        let progress = *self.lock();
        BackupProgress { checked: progress.checked.min(progress.bytes), ..progress }
    }

    fn lock(&self) -> MutexGuard<'_, BackupProgress> {
        self.0.progress.lock().expect("no thread panics while it holds the progress")
    }

    /// The files are pinned since this instant.
    pub(super) fn held(&self, as_of: Timestamp) {
        self.lock().as_of = Some(as_of);
    }

    /// This many files and bytes are to be copied.
    pub(super) fn begins(&self, files: u64, bytes: u64) {
        let mut progress = self.lock();
        (progress.files, progress.bytes) = (files, bytes);
    }

    /// This many more bytes are copied.
    ///
    /// # Errors
    /// [`BackupError::Stopped`].
    pub(super) fn copied(&self, bytes: u64) -> Result<(), BackupError> {
        self.lock().copied += bytes;
        self.go_on()
    }

    /// Everything is copied. The check begins.
    pub(super) fn checks(&self) {
        self.lock().phase = BackupPhase::Checking;
    }

    /// This many more bytes were read again.
    pub(super) fn checked(&self, bytes: u64) {
        self.lock().checked += bytes;
    }

    /// Whether the backup may go on.
    ///
    /// # Errors
    /// [`BackupError::Stopped`].
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
