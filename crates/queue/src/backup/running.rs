//! The copy of a directory that is in use.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::Sender;

use tickwheel_engine::{Timestamp, Unavailable};
use tickwheel_store::{Disk, DiskStore, Held, Io, MemoryStore};

use super::checked::{check, identity_of};
use super::copy::{Copy, Part};
use super::hand::{Hand, stand_back};
use super::manifest::{Manifest, ManifestFile};
use super::report::{BackupError, BackupReport};
use super::watch::BackupWatch;
use crate::driver::Message;
use crate::health::Durability;
use crate::time::system_now;

/// The thread of a backup that works beside a queue.
const BACKUP_THREAD: &str = "tickwheel-backup";

/// A store whose files can be held still for a copy.
pub trait Holds {
    /// Holds them still, and says which they are; `None` if it has no files.
    fn hold(&mut self) -> Option<Held>;
    /// They may change again.
    fn let_go(&mut self);
}

impl Holds for MemoryStore {
    fn hold(&mut self) -> Option<Held> {
        None
    }

    fn let_go(&mut self) {}
}

impl<D: Disk, I: Io<D>> Holds for DiskStore<D, I> {
    fn hold(&mut self) -> Option<Held> {
        Some(Self::hold(self))
    }

    fn let_go(&mut self) {
        Self::let_go(self);
    }
}

/// What the thread that owns the store is asked for a copy.
#[derive(Debug)]
pub(crate) enum Hold {
    /// Hold still what it needs, and say what that is, and since when.
    Begin(oneshot::Sender<(Option<Held>, Timestamp)>),
    /// Let go, and tell the asker, if he is there, that it was held up to now.
    End(Option<oneshot::Sender<()>>),
}

impl Hold {
    /// Begins or ends the hold. The calling thread also sends the answers, so every answer before `now` came before the hold.
    pub(crate) fn carry_out(self, store: &mut impl Holds, now: Timestamp) {
        match self {
            Self::Begin(reply) => {
                if reply.send((store.hold(), now)).is_err() {
                    // Whoever asked is gone.
                    store.let_go();
                }
            }
            Self::End(reply) => {
                store.let_go();
                if let Some(reply) = reply {
                    let _gone = reply.send(());
                }
            }
        }
    }
}

/// Where the copies of a queue come from.
#[derive(Debug)]
pub(crate) struct Source {
    /// `None`: memory.
    directory: Option<PathBuf>,
    /// What an acknowledged call survives: with [`Durability::Memory`] it may not be written yet when the files are held.
    ack: Durability,
    /// Held while a copy is made.
    turn: Mutex<()>,
}

impl Source {
    pub(crate) fn new(directory: Option<PathBuf>, ack: Durability) -> Self {
        Self { directory, ack, turn: Mutex::new(()) }
    }

    /// Copies what the owner of the store holds still meanwhile.
    pub(crate) fn copy_to(
        &self,
        target: &Path,
        messages: &Sender<Message>,
    ) -> Result<BackupReport, BackupError> {
        let directory = self.directory.as_ref().ok_or(BackupError::InMemory)?;
        let _turn = self.turn()?;
        let copy = Copy::begin(directory, target)?;
        let (report, _) = copy_held(directory, &copy, messages, &mut Hand::quick())?;
        copy.finish()?;
        Ok(BackupReport { ack: Some(self.ack), ..report })
    }

    /// The same beside a queue that works, on a thread of its own; the copy is checked and says what it is.
    pub(crate) fn copy_gently(
        &self,
        target: &Path,
        messages: &Sender<Message>,
        watch: &BackupWatch,
    ) -> Result<BackupReport, BackupError> {
        let directory = self.directory.as_ref().ok_or(BackupError::InMemory)?;
        let _turn = self.turn()?;
        std::thread::scope(|scope| {
            let work = || {
                stand_back();
                copy_checked((directory, self.ack), target, messages, watch)
            };
            let thread = std::thread::Builder::new().name(BACKUP_THREAD.to_owned()).spawn_scoped(scope, work);
            match thread.map_err(BackupError::Thread)?.join() {
                Ok(copied) => copied,
                Err(_panic) => Err(BackupError::Panicked),
            }
        })
    }

    /// One copy at a time.
    fn turn(&self) -> Result<std::sync::MutexGuard<'_, ()>, BackupError> {
        match self.turn.try_lock() {
            Ok(turn) => Ok(turn),
            // The last one panicked, and let go then.
            Err(std::sync::TryLockError::Poisoned(turn)) => Ok(turn.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => Err(BackupError::Busy),
        }
    }
}

fn copy_checked(
    (directory, ack): (&Path, Durability),
    target: &Path,
    messages: &Sender<Message>,
    watch: &BackupWatch,
) -> Result<BackupReport, BackupError> {
    let begun_at = system_now();
    let mut hand = Hand::gentle(watch.clone());
    let copy = Copy::begin(directory, target)?;
    let (report, files) = copy_held(directory, &copy, messages, &mut hand)?;
    // What is held is let go of before this: the check may take long, and the log takes space meanwhile.
    let found = check(copy.path(), hand)?;
    if !found.is_in_order() {
        // It is not told here which of the two is damaged: the directory is in use, and an examination of it takes as long again.
        return Err(BackupError::BadRunningCopy { path: directory.to_owned(), problems: found.problems });
    }
    let report = BackupReport { ack: Some(ack), ..report.checked(&found) };
    let identity = identity_of(copy.path())?;
    copy.describe(&Manifest::new(report, identity, files, begun_at, system_now()))?;
    watch.go_on()?;
    copy.finish()?;
    Ok(report)
}

/// Has the owner of the store hold its files still, and copies them. It has let go of them when this returns.
fn copy_held(
    directory: &Path,
    copy: &Copy,
    messages: &Sender<Message>,
    hand: &mut Hand,
) -> Result<(BackupReport, Vec<ManifestFile>), BackupError> {
    let closed = || BackupError::Unavailable(Unavailable::Closed);
    let (reply, held) = oneshot::channel();
    let held_still = HeldStill(messages);
    messages.send(Message::Hold(Hold::Begin(reply))).map_err(|_| closed())?;
    let (held, as_of) = held.recv().map_err(|_| closed())?;
    let held = held.ok_or(BackupError::InMemory)?;
    hand.watch().held(as_of);
    let parts = held.files.iter().map(|file| Part {
        name: file.name.to_string(),
        bytes: file.bytes,
        len: file.len,
        content: file.content.clone(),
    });
    let files = copy.take(directory, &parts.collect::<Vec<_>>(), hand)?;
    // A queue that has closed holds nothing, and its next owner may have changed what was being copied.
    let (reply, held) = oneshot::channel();
    messages.send(Message::Hold(Hold::End(Some(reply)))).map_err(|_| closed())?;
    held.recv().map_err(|_| closed())?;
    std::mem::forget(held_still);
    let bytes = files.iter().map(|file| file.bytes).sum();
    let report =
        BackupReport { files: files.len() as u64, bytes, as_of: Some(as_of), ..BackupReport::default() };
    Ok((report, files))
}

/// Lets go when it is dropped, also by a panic.
struct HeldStill<'a>(&'a Sender<Message>);

impl Drop for HeldStill<'_> {
    fn drop(&mut self) {
        // The thread may have ended; then nothing is held.
        let _gone = self.0.send(Message::Hold(Hold::End(None)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};
    use tickwheel_store::HeldFile;

    /// Answers holds with these files until nobody can ask. Returns how many began, and how many ended.
    fn owner(inbox: Receiver<Message>, files: Vec<HeldFile>) -> (u32, u32) {
        struct Fake(Vec<HeldFile>, u32, u32);
        impl Holds for Fake {
            fn hold(&mut self) -> Option<Held> {
                self.1 += 1;
                Some(Held { files: self.0.clone() })
            }
            fn let_go(&mut self) {
                self.2 += 1;
            }
        }
        let mut fake = Fake(files, 0, 0);
        while let Ok(message) = inbox.recv() {
            let Message::Hold(hold) = message else { panic!("{message:?} is no hold") };
            hold.carry_out(&mut fake, Timestamp::EPOCH);
        }
        (fake.1, fake.2)
    }

    #[test]
    fn whatever_becomes_of_a_copy_the_hold_ends() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = dir.path().join("source");
        std::fs::create_dir(&source).expect("made");
        std::fs::write(source.join("meta"), b"12345678").expect("written");
        let file = |name: &str, bytes| HeldFile { name: name.into(), bytes, len: 0, content: None };
        let cases = [
            (vec![file("meta", None)], true),
            (vec![file("meta", Some(5))], true),
            (vec![file("meta", Some(9))], false),
            (vec![file("meta", None), file("shard-0000/absent", None)], false),
        ];
        for (index, (files, works)) in cases.into_iter().enumerate() {
            let (messages, inbox) = channel();
            let answering = std::thread::spawn(|| owner(inbox, files));
            let target = dir.path().join(index.to_string());
            let copied = Source::new(Some(source.clone()), Durability::Fsync).copy_to(&target, &messages);
            drop(messages);
            assert_eq!((copied.is_ok(), target.exists()), (works, works), "case {index}: {copied:?}");
            assert!(!dir.path().join(format!("{index}.unfinished")).exists(), "case {index}");
            assert_eq!(answering.join().expect("it ends"), (1, 1), "case {index}");
        }
    }

    /// Another user may put a link in the place of a file while it is held, and the copy must not read what is behind it.
    #[test]
    fn a_link_in_the_place_of_a_file_that_is_held_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = dir.path().join("source");
        std::fs::create_dir(&source).expect("made");
        std::fs::write(dir.path().join("secret"), b"12345678").expect("written");
        std::os::unix::fs::symlink(dir.path().join("secret"), source.join("meta")).expect("linked");
        let (messages, inbox) = channel();
        let files = vec![HeldFile { name: "meta".into(), bytes: None, len: 0, content: None }];
        let answering = std::thread::spawn(|| owner(inbox, files));
        let error =
            Source::new(Some(source.clone()), Durability::Fsync).copy_to(&dir.path().join("copy"), &messages);
        drop(messages);
        let told = format!("{:?}", error.expect_err("it is a link"));
        assert!(told.contains("it is a symbolic link") && told.contains("meta"), "{told}");
        assert_eq!(answering.join().expect("it ends"), (1, 1), "the hold ends");
    }

    #[test]
    fn a_panic_lets_go() {
        let (messages, inbox) = channel();
        let panicked = std::thread::spawn(move || {
            let _held_still = HeldStill(&messages);
            panic!("in the middle of a copy");
        });
        panicked.join().expect_err("it panicked");
        assert!(matches!(inbox.recv(), Ok(Message::Hold(Hold::End(None)))));
    }

    #[test]
    fn a_copy_during_which_the_queue_closed_is_none() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = dir.path().join("source");
        std::fs::create_dir(&source).expect("made");
        std::fs::write(source.join("meta"), b"12345678").expect("written");
        let (messages, inbox) = channel();
        let answering = std::thread::spawn(move || {
            if let Ok(Message::Hold(Hold::Begin(reply))) = inbox.recv() {
                let files = vec![HeldFile { name: "meta".into(), bytes: None, len: 0, content: None }];
                reply.send((Some(Held { files }), Timestamp::EPOCH)).expect("the asker waits");
            }
        });
        let target = dir.path().join("copy");
        let copied = Source::new(Some(source), Durability::Fsync).copy_to(&target, &messages);
        assert!(matches!(copied, Err(BackupError::Unavailable(Unavailable::Closed))), "{copied:?}");
        assert!(!target.exists());
        answering.join().expect("it ends");
    }
}
