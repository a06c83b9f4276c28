//! [`Throttle`]: the pace of a backup, and the watch that can stop it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise, statvfs};

use super::report::{BackupError, failed};
use super::watch::BackupWatch;

/// The size of a piece in a gentle backup (bytes). The queue works during such a backup. Each piece is read, written and synced before the
/// next piece is read. The sync of one piece takes about as long as the sync of a commit. So a commit that comes during the sync of a piece
/// waits for about one more sync.
const GENTLE_PIECE_BYTES: usize = 128 << 10;
/// The size of a piece in a quick backup (bytes).
const PIECE_BYTES: usize = 1 << 20;
/// A gentle backup rests this many times as long as it worked. On a busy disk the work takes longer, and so does the rest.
const REST: u32 = 4;
/// Shorter rests are added up, because a shorter sleep takes as long as this one.
const NAP_MIN: Duration = Duration::from_millis(1);
/// A rest is cut to this duration, so that a stop is noticed soon.
const NAP_MAX: Duration = Duration::from_millis(250);
/// A gentle backup stops when less than this is free on the target disk or on the data disk: 256 MiB, or 5 % of a small disk. The log grows
/// during the copy, and a full disk refuses puts.
const LEFT_FREE: LeftFree = LeftFree { bytes: 256 << 20, part: 20 };
/// The free space is checked once in this many pieces.
const PIECES_PER_LOOK: u32 = 64;
/// The lowest priority: the thread gets little of the processor while other threads want it.
#[cfg(target_os = "linux")]
const NICEST: i32 = 19;

/// How many bytes of a disk a backup leaves free: `bytes`, or one `part`-th of the disk if that is less.
#[derive(Copy, Clone, Debug)]
struct LeftFree {
    bytes: u64,
    part: u64,
}

/// The pace of one backup, and its way to be stopped.
#[derive(Debug)]
pub(super) struct Throttle {
    watch: BackupWatch,
    gentle: bool,
    /// The rest that the backup still has to take.
    owed: Duration,
    pieces: u32,
    /// The folders whose disks must not be filled.
    places: Vec<PathBuf>,
    left_free: LeftFree,
}

impl Throttle {
    /// Makes the pace of a backup that works as fast as it can, and that no caller can stop.
    pub(super) fn quick() -> Self {
        Self { gentle: false, ..Self::gentle(BackupWatch::new()) }
    }

    /// Makes the pace of a backup beside a queue that works: small pieces that are synced one by one, with rests. `watch` can stop the
    /// backup.
    pub(super) fn gentle(watch: BackupWatch) -> Self {
        let places = Vec::new();
        Self { watch, gentle: true, owed: Duration::ZERO, pieces: 0, places, left_free: LEFT_FREE }
    }

    pub(super) fn watch(&self) -> &BackupWatch {
        &self.watch
    }

    pub(super) fn piece_bytes(&self) -> usize {
        if self.gentle { GENTLE_PIECE_BYTES } else { PIECE_BYTES }
    }

    /// Checks that a copy of `bytes` fits into `target`, and that the disk of `source` has enough free bytes. From then on, both disks are
    /// checked again after each [`PIECES_PER_LOOK`] pieces. A quick backup checks nothing.
    ///
    /// # Errors
    /// [`BackupError::NoRoom`].
    pub(super) fn look_after(&mut self, source: &Path, target: &Path, bytes: u64) -> Result<(), BackupError> {
        if !self.gentle {
            return Ok(());
        }
        self.places = vec![target.to_owned(), source.to_owned()];
        check_room(target, bytes, self.left_free)?;
        check_room(source, 0, self.left_free)
    }

    /// Counts a piece of `bytes` that was written into `target`, up to the offset `end`. A gentle backup also syncs the piece, checks the
    /// free space now and then, and rests. The work on the piece began at `begun`.
    ///
    /// # Errors
    /// [`BackupError::Stopped`], [`BackupError::NoRoom`], or the piece cannot be synced.
    pub(super) fn wrote(
        &mut self,
        (path, target): (&Path, &File),
        end: u64,
        bytes: u64,
        begun: Instant,
    ) -> Result<(), BackupError> {
        if self.gentle {
            target.sync_data().map_err(|source| failed("sync", path, source))?;
            // The piece is dropped from the system's cache. So the check reads the disk itself, and the pages of the queue stay in the
            // cache. The system may ignore this advice.
            let _kept = fadvise(target, end - bytes, core::num::NonZeroU64::new(bytes), Advice::DontNeed);
            self.pieces += 1;
            if self.pieces.is_multiple_of(PIECES_PER_LOOK) {
                self.places.iter().try_for_each(|place| check_room(place, 0, self.left_free))?;
            }
            self.rest(begun.elapsed());
        }
        self.watch.copied(bytes)
    }

    /// Counts bytes of the copy that were read again. A gentle backup also rests.
    pub(super) fn read(&mut self, bytes: u64, begun: Instant) {
        self.watch.checked(bytes);
        if self.gentle {
            self.rest(begun.elapsed());
        }
    }

    fn rest(&mut self, worked: Duration) {
        self.owed += worked * REST;
        if self.owed >= NAP_MIN {
            std::thread::sleep(self.owed.min(NAP_MAX));
            self.owed = Duration::ZERO;
        }
    }
}

/// Checks that the disk of this folder has `bytes` free, and `left_free` beside them.
fn check_room(folder: &Path, bytes: u64, left_free: LeftFree) -> Result<(), BackupError> {
    // A file system that does not say how much is free counts as not full.
    let Ok(stat) = statvfs(folder) else { return Ok(()) };
    let [free, all] = [stat.f_bavail, stat.f_blocks].map(|blocks| blocks.saturating_mul(stat.f_frsize));
    let needed = bytes.saturating_add(left_free.bytes.min(all / left_free.part));
    if free < needed {
        return Err(BackupError::NoRoom { path: folder.to_owned(), needed, free });
    }
    Ok(())
}

/// Gives the calling thread, and no other one, the lowest priority until the thread ends. Does nothing on other systems than Linux.
pub(super) fn stand_back() {
    // On Linux this call changes one thread, though its name says process. If the system refuses, only the rests slow the backup down.
    #[cfg(target_os = "linux")]
    let _refused = rustix::process::setpriority_process(None, NICEST);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_does_not_fit_is_refused_before_it_is_made() {
        let dir = tempfile::tempdir().expect("a directory");
        let (source, target) = (dir.path().join("source"), dir.path().join("target"));
        for path in [&source, &target] {
            std::fs::create_dir(path).expect("made");
        }
        // No disk has this much. `left_free` is added to it.
        let bytes = 1 << 62;
        let mut throttle = Throttle::gentle(BackupWatch::new());
        let refused = throttle.look_after(&source, &target, bytes).expect_err("it does not fit");
        let BackupError::NoRoom { path, needed, free } = &refused else { panic!("{refused}") };
        assert!(*path == target && *needed > bytes && free < needed, "{refused}");
        assert!(refused.to_string().contains("make room"), "{refused}");
        Throttle::quick().look_after(&source, &target, bytes).expect("nobody else needs the disk");
        check_room(&dir.path().join("absent"), bytes, LEFT_FREE)
            .expect("a disk that does not say is not full");
    }

    #[test]
    fn a_disk_that_fills_up_during_the_copy_stops_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("copy");
        let file = File::create(&path).expect("made");
        let mut throttle = Throttle::gentle(BackupWatch::new());
        throttle.places = vec![dir.path().to_owned()];
        throttle.left_free = LeftFree { bytes: u64::MAX, part: 1 };
        let mut written = 0;
        let refused = loop {
            match throttle.wrote((&path, &file), 1, 1, Instant::now()) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
            assert!(written < PIECES_PER_LOOK, "it was not looked at");
        };
        assert!(matches!(refused, BackupError::NoRoom { .. }) && written == PIECES_PER_LOOK - 1, "{refused}");
    }
}
