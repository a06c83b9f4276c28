//! [`Source`]: copies the directory of a running queue.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tickwheel_engine::Unavailable;
use tickwheel_store::{Durability, PinnedFile, PinnedFiles};

use super::checked::check;
use super::copy::Copy;
use super::manifest::{ManifestFile, report_of};
use super::report::{BackupError, BackupReport};
use super::throttle::{Throttle, stand_back};
use super::watch::BackupWatch;
use crate::clock::time::system_now;
use crate::thread::mailbox::{Mailbox, Signal};
use crate::thread::pin::Pin;

/// The name of the thread of a backup beside a running queue.
const BACKUP_THREAD: &str = "tickwheel-backup";

/// Makes the copies of one queue, one at a time.
#[derive(Debug)]
pub(crate) struct Source {
    /// The directory that is copied. `None`: the store has no files.
    directory: Option<PathBuf>,
    /// Which failures an acknowledged call survives. With [`Durability::Memory`], a call may be acknowledged and not yet written when the
    /// files are pinned.
    ack: Durability,
    /// The right to make a copy. The mutex is locked while a copy is made.
    turn: Mutex<()>,
}

impl Source {
    pub(crate) fn new(directory: Option<PathBuf>, ack: Durability) -> Self {
        Self { directory, ack, turn: Mutex::new(()) }
    }

    /// Returns the directory of the store; `None` if the store has no files.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Copies the files on the calling thread, as fast as possible. The shard thread keeps the files pinned meanwhile.
    pub(crate) fn copy_to(
        &self,
        target: &Path,
        stamps: &[PinnedFile],
        mailbox: &Mailbox,
    ) -> Result<BackupReport, BackupError> {
        let directory = self.directory.as_ref().ok_or(BackupError::InMemory)?;
        let _turn = self.turn()?;
        let copy = Copy::begin(directory, target)?;
        let (report, _) = copy_pinned(directory, (&copy, stamps), mailbox, &mut Throttle::quick())?;
        copy.finish()?;
        Ok(BackupReport { ack: Some(self.ack), ..report })
    }

    /// Copies the files slowly, on a thread of its own, so that the queue can work meanwhile. Blocks until the copy is checked and has a
    /// manifest and its final name, or until an error.
    pub(crate) fn copy_gently(
        &self,
        target: (&Path, &[PinnedFile]),
        mailbox: &Mailbox,
        watch: &BackupWatch,
    ) -> Result<BackupReport, BackupError> {
        let directory = self.directory.as_ref().ok_or(BackupError::InMemory)?;
        let _turn = self.turn()?;
        std::thread::scope(|scope| {
            let work = || {
                stand_back();
                copy_checked((directory, self.ack), target, mailbox, watch)
            };
            let thread = std::thread::Builder::new().name(BACKUP_THREAD.to_owned()).spawn_scoped(scope, work);
            match thread.map_err(BackupError::Thread)?.join() {
                Ok(copied) => copied,
                Err(_panic) => Err(BackupError::Panicked),
            }
        })
    }

    /// Takes the right to make a copy. Fails with [`BackupError::Busy`] while another copy is made.
    fn turn(&self) -> Result<std::sync::MutexGuard<'_, ()>, BackupError> {
        match self.turn.try_lock() {
            Ok(turn) => Ok(turn),
            // An earlier copy panicked. The panic released the lock, so another copy may begin.
            Err(std::sync::TryLockError::Poisoned(turn)) => Ok(turn.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => Err(BackupError::Busy),
        }
    }
}

fn copy_checked(
    (directory, ack): (&Path, Durability),
    (target, stamps): (&Path, &[PinnedFile]),
    mailbox: &Mailbox,
    watch: &BackupWatch,
) -> Result<BackupReport, BackupError> {
    let begun_at = system_now();
    watch.copies();
    let mut throttle = Throttle::gentle(watch.clone());
    let copy = Copy::begin(directory, target)?;
    let (report, files) = copy_pinned(directory, (&copy, stamps), mailbox, &mut throttle)?;
    // The files are unpinned before this check. The check may take long, and the log grows while files are pinned.
    let found = check(copy.path(), throttle)?;
    if !found.is_in_order() {
        // The error does not tell whether the directory or the copy is damaged. An examination of the directory in use would take as long
        // as this check.
        return Err(BackupError::BadRunningCopy { path: directory.to_owned(), problems: found.problems });
    }
    let report = BackupReport { ack: Some(ack), ..report.checked(&found) };
    copy.describe(report, files, begun_at)?;
    watch.go_on()?;
    copy.finish()?;
    Ok(report)
}

/// Asks the shard thread to pin its files, copies them, and asks the shard thread to unpin them, also after an error.
fn copy_pinned(
    directory: &Path,
    (copy, stamps): (&Copy, &[PinnedFile]),
    mailbox: &Mailbox,
    throttle: &mut Throttle,
) -> Result<(BackupReport, Vec<ManifestFile>), BackupError> {
    let closed = || BackupError::Unavailable(Unavailable::Closed);
    let (reply, pinned) = oneshot::channel();
    let unpins = UnpinsAtDrop(mailbox);
    mailbox.signal(Signal::Pin(Pin::Begin(reply)))?;
    let (pinned, as_of) = pinned.recv().map_err(|_| closed())?;
    let PinnedFiles { mut files } = pinned.ok_or(BackupError::InMemory)?;
    files.extend_from_slice(stamps);
    throttle.watch().held(as_of);
    let files = copy.take(directory, &files, throttle)?;
    // The answer of the shard thread proves that the files were pinned until now. A queue that has closed sends no answer. Then the
    // next owner of the directory may have changed the files while they were copied.
    let (reply, unpinned) = oneshot::channel();
    mailbox.signal(Signal::Pin(Pin::End(Some(reply))))?;
    unpinned.recv().map_err(|_| closed())?;
    std::mem::forget(unpins);
    Ok((BackupReport { as_of: Some(as_of), ..report_of(&files) }, files))
}

/// Asks the shard thread to unpin the files when this value is dropped, also after a panic.
struct UnpinsAtDrop<'a>(&'a Mailbox);

impl Drop for UnpinsAtDrop<'_> {
    fn drop(&mut self) {
        // The shard thread may have ended. Then nothing is pinned.
        let _gone = self.0.signal(Signal::Pin(Pin::End(None)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};
    use tickwheel_engine::Timestamp;
    use tickwheel_store::BackupPin;

    use crate::thread::mailbox::Message;

    fn mailbox() -> (Mailbox, Receiver<Message>) {
        let (thread, inbox) = channel();
        (Mailbox::new(0, thread), inbox)
    }

    /// Does the work of the shard thread: pins these files on request, until no backup can send a request any more. Returns how many pins
    /// began, and how many ended.
    fn owner(inbox: Receiver<Message>, files: Vec<PinnedFile>) -> (u32, u32) {
        struct Fake(Vec<PinnedFile>, u32, u32);
        impl BackupPin for Fake {
            fn pin(&mut self) -> PinnedFiles {
                self.1 += 1;
                PinnedFiles { files: self.0.clone() }
            }
            fn unpin(&mut self) {
                self.2 += 1;
            }
        }
        let mut fake = Fake(files, 0, 0);
        while let Ok(message) = inbox.recv() {
            let Message::Signal { signal: Signal::Pin(pin), .. } = message else {
                panic!("{message:?} is no pin")
            };
            pin.carry_out(Some(&mut fake), Timestamp::EPOCH);
        }
        (fake.1, fake.2)
    }

    #[test]
    fn the_pin_ends_whether_the_copy_succeeds_or_fails() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = dir.path().join("source");
        std::fs::create_dir(&source).expect("made");
        std::fs::write(source.join("meta"), b"12345678").expect("written");
        let file = |name: &str, bytes| PinnedFile { name: name.into(), bytes, len: 0, content: None };
        let cases = [
            (vec![file("meta", None)], true),
            (vec![file("meta", Some(5))], true),
            (vec![file("meta", Some(9))], false),
            (vec![file("meta", None), file("shard-0000/absent", None)], false),
        ];
        for (index, (files, works)) in cases.into_iter().enumerate() {
            let (mailbox, inbox) = mailbox();
            let answering = std::thread::spawn(|| owner(inbox, files));
            let target = dir.path().join(index.to_string());
            let copied = Source::new(Some(source.clone()), Durability::Fsync).copy_to(&target, &[], &mailbox);
            drop(mailbox);
            assert_eq!((copied.is_ok(), target.exists()), (works, works), "case {index}: {copied:?}");
            assert!(!dir.path().join(format!("{index}.unfinished")).exists(), "case {index}");
            assert_eq!(answering.join().expect("it ends"), (1, 1), "case {index}");
        }
    }

    /// Another user may put a link in the place of a pinned file. The copy must not follow the link.
    #[test]
    fn a_link_in_the_place_of_a_pinned_file_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = dir.path().join("source");
        std::fs::create_dir(&source).expect("made");
        std::fs::write(dir.path().join("secret"), b"12345678").expect("written");
        std::os::unix::fs::symlink(dir.path().join("secret"), source.join("meta")).expect("linked");
        let (mailbox, inbox) = mailbox();
        let files = vec![PinnedFile { name: "meta".into(), bytes: None, len: 0, content: None }];
        let answering = std::thread::spawn(|| owner(inbox, files));
        let error = Source::new(Some(source.clone()), Durability::Fsync).copy_to(
            &dir.path().join("copy"),
            &[],
            &mailbox,
        );
        drop(mailbox);
        let told = format!("{:?}", error.expect_err("it is a link"));
        assert!(told.contains("it is a symbolic link") && told.contains("meta"), "{told}");
        assert_eq!(answering.join().expect("it ends"), (1, 1), "the pin ends");
    }

    #[test]
    fn a_panic_unpins() {
        let (mailbox, inbox) = mailbox();
        let panicked = std::thread::spawn(move || {
            let _unpins = UnpinsAtDrop(&mailbox);
            panic!("in the middle of a copy");
        });
        panicked.join().expect_err("it panicked");
        assert!(matches!(
            inbox.recv(),
            Ok(Message::Signal { place: 0, signal: Signal::Pin(Pin::End(None)) })
        ));
    }

    #[test]
    fn a_copy_during_which_the_queue_closed_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = dir.path().join("source");
        std::fs::create_dir(&source).expect("made");
        std::fs::write(source.join("meta"), b"12345678").expect("written");
        let (mailbox, inbox) = mailbox();
        let answering = std::thread::spawn(move || {
            if let Ok(Message::Signal { signal: Signal::Pin(Pin::Begin(reply)), .. }) = inbox.recv() {
                let files = vec![PinnedFile { name: "meta".into(), bytes: None, len: 0, content: None }];
                reply.send((Some(PinnedFiles { files }), Timestamp::EPOCH)).expect("the asker waits");
            }
        });
        let target = dir.path().join("copy");
        let copied = Source::new(Some(source), Durability::Fsync).copy_to(&target, &[], &mailbox);
        assert!(matches!(copied, Err(BackupError::Unavailable(Unavailable::Closed))), "{copied:?}");
        assert!(!target.exists());
        answering.join().expect("it ends");
    }
}
