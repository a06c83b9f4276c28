//! [`SimDisk`]: a disk in memory that may lose unsynced changes at a crash, in every way that a real disk may.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use tickwheel_store::{Disk, DiskError, DiskOp};

mod change;
mod crash;
mod fault;
#[cfg(test)]
mod tests;

use self::change::{NameChange, Write};
pub use self::crash::LastWrite;
pub use self::fault::Fault;
use self::fault::Schedule;

/// The size of a sector (bytes). A sector is written or lost as a whole.
const SECTOR: usize = 512;

/// The number of the error `EMFILE` of Linux.
const NO_DESCRIPTOR: i32 = 24;

/// A disk in memory that knows what is durable and what a crash may still lose.
///
/// For each file it keeps the durable bytes and the list of writes since the last sync; for each directory the durable
/// names and the list of changes since the last sync. [`crash`](Self::crash) keeps any subset of the unsynced changes,
/// in any order, some of them torn. A clone is the same disk; [`image`](Self::image) makes an independent copy.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// The number of calls of each kind, for reports.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Calls {
    /// Writes and changes of length.
    pub writes: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Number of files and directories that were created, renamed or removed.
    pub names: u64,
    /// Syncs of directories.
    pub dir_syncs: u64,
    /// Writes that a crash tore, dropped or reordered.
    pub damaged: u64,
}

#[derive(Clone, Debug, Default)]
struct State {
    files: BTreeMap<Inode, File>,
    names: BTreeMap<String, Inode>,
    durable_names: BTreeMap<String, Inode>,
    dirs: BTreeMap<String, Dir>,
    durable_dirs: Vec<String>,
    next_inode: Inode,
    schedule: Schedule,
    /// The largest sum of the lengths of all files (bytes); `None`: no bound.
    space: Option<u64>,
    crashed: bool,
    /// The file of the last look that failed by a planned fault. The file may be one that is not there.
    failed_look: Option<String>,
    /// The number of changes until the machine dies, the last of them included; `None`: it does not die by a number of changes.
    changes_left: Option<u64>,
    calls: Calls,
}

type Inode = u64;

#[derive(Clone, Debug, Default)]
struct File {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Write>,
    /// The ranges of the writes that the last sync covered. If one of them is damaged, nothing later on the disk can
    /// show that the write existed.
    last_synced: Vec<Range<usize>>,
    lie: Option<Lie>,
}

/// A sync of a file that lied: it reported success, and [`SimDisk::after_lies`] shows the disk without its writes.
#[derive(Clone, Debug)]
struct Lie {
    /// The durable bytes without the writes that the sync covered.
    before: Vec<u8>,
    /// The writes that later syncs covered.
    after: Vec<Write>,
    /// Whether the file is a log file. Lost frames of a log file are shown for certain only by later frames.
    is_log: bool,
    /// The number of later syncs. For a log file, only syncs that covered frames count, because the zeroes of a spare
    /// file show nothing.
    syncs: u64,
}

#[derive(Clone, Debug, Default)]
struct Dir {
    unsynced: Vec<NameChange>,
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        let disk = Self::default();
        disk.lock_state().dirs.insert(String::new(), Dir::default());
        disk
    }

    /// Another disk with the same content, without planned faults.
    #[must_use]
    pub fn image(&self) -> Self {
        let mut state = self.lock_state().clone();
        state.schedule.forget();
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Limits the sum of the lengths of all files (bytes), or removes the limit. A write beyond the limit fails
    /// because there is no space, and changes nothing. Existing bytes stay, even if the limit is below their sum.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.lock_state().space = bytes;
    }

    /// The sum of the lengths of all files (bytes).
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lock_state().used_bytes()
    }

    /// Lets the machine die at the change with this number, counted from 1 from now on. `None`: it does not die by a number of changes.
    pub fn allow_changes(&self, times: Option<u64>) {
        self.lock_state().changes_left = times;
    }

    /// Whether the machine has died at the change that [`allow_changes`](Self::allow_changes) names.
    #[must_use]
    pub fn has_no_changes_left(&self) -> bool {
        self.lock_state().changes_left == Some(0)
    }

    /// Whether the machine has died and was not started again. It dies at a [`Fault::Crash`], or at the change that
    /// [`allow_changes`](Self::allow_changes) names.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.lock_state().crashed
    }

    /// The number of calls of each kind so far.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.lock_state().calls
    }

    /// The names of all files, with their lengths (bytes), for reports.
    #[must_use]
    pub fn files(&self) -> Vec<(String, usize)> {
        let state = self.lock_state();
        state.names.iter().map(|(name, inode)| (name.clone(), state.files[inode].live.len())).collect()
    }

    /// Whether the last sync of a file covered a part of this range.
    ///
    /// # Panics
    /// If there is no such file.
    #[must_use]
    pub fn was_synced_last(&self, file: &str, range: &Range<usize>) -> bool {
        let state = self.lock_state();
        state.files[state.names.get(file).expect("the file is there")].is_last(range)
    }

    /// Flips one bit of a file, in the live and in the durable bytes, as damage to synced bytes does.
    ///
    /// # Panics
    /// If there is no such byte.
    pub fn flip_bit(&self, file: &str, byte: usize, bit: u8) {
        let mut state = self.lock_state();
        let inode = *state.names.get(file).expect("the file is there");
        let file = state.files.get_mut(&inode).expect("a name has its file");
        file.live[byte] ^= 1 << bit;
        if let Some(durable) = file.durable.get_mut(byte) {
            *durable ^= 1 << bit;
        }
    }

    /// Deletes a file from outside of the store. The deletion is durable.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn delete(&self, file: &str) {
        let mut state = self.lock_state();
        state.names.remove(file).expect("the file is there");
        state.durable_names.remove(file);
    }

    /// Replaces a sector of a file by the sector before it (for the first one: after it), in the live and in the
    /// durable bytes, like a write to a wrong place. Returns whether that changed anything. A sector of zeroes is not
    /// replaced, because the end of a log would be lost.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn misplace_sector(&self, file: &str, sector: usize) -> bool {
        let mut state = self.lock_state();
        let inode = *state.names.get(file).expect("the file is there");
        let file = state.files.get_mut(&inode).expect("a name has its file");
        let old = file.clone();
        neighbour(&mut file.live, sector);
        neighbour(&mut file.durable, sector);
        let there = file.live.iter().skip(sector * SECTOR).take(SECTOR);
        let changed = old.live != file.live && there.clone().any(|&byte| byte != 0);
        if !changed {
            *file = old;
        }
        changed
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the disk")
    }

    /// Counts a call that changes something, and carries out the fault that was planned for it.
    fn change<T>(
        &mut self,
        op: DiskOp,
        file: &str,
        effect: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> Result<T, DiskError> {
        let mut state = self.lock_state();
        let failed =
            |kind: io::ErrorKind, why: &str| DiskError::new(op, file, io::Error::new(kind, why.to_owned()));
        if state.crashed {
            return Err(failed(io::ErrorKind::Other, "the machine is dead"));
        }
        if let Some(left) = &mut state.changes_left {
            *left = left.saturating_sub(1);
            if *left == 0 {
                state.crashed = true;
                return Err(failed(io::ErrorKind::Other, "more changes than may be made"));
            }
        }
        match state.schedule.next(op) {
            Some(Fault::Crash) => {
                state.crashed = true;
                // The crash came in the middle of the call, so its change may be kept or lost. A sync that crashed has
                // promised nothing.
                if !matches!(op, DiskOp::Sync | DiskOp::SyncDir) {
                    let _ = effect(&mut state);
                }
                Err(failed(io::ErrorKind::Other, "the machine died"))
            }
            Some(Fault::Full) => Err(failed(io::ErrorKind::StorageFull, "no space left")),
            Some(Fault::NoDescriptor) => {
                Err(DiskError::new(op, file, io::Error::from_raw_os_error(NO_DESCRIPTOR)))
            }
            Some(Fault::Error) => Err(failed(io::ErrorKind::Other, "input/output error")),
            Some(Fault::LosingSync) => {
                if op == DiskOp::Sync
                    && let Some(inode) = state.names.get(file).copied()
                    && let Some(file) = state.files.get_mut(&inode)
                {
                    file.unsynced.clear();
                }
                Err(failed(io::ErrorKind::Other, "input/output error"))
            }
            Some(Fault::LyingSync) if op == DiskOp::Sync => {
                let is_log = is_log(file);
                if let Ok(file) = state.file(file)
                    && file.lie.is_none()
                {
                    file.lie =
                        Some(Lie { before: file.durable.clone(), after: Vec::new(), is_log, syncs: 0 });
                    // These writes must not count as writes that a later sync covers.
                    file.sync(false);
                }
                effect(&mut state).map_err(|source| DiskError::new(op, file, source))
            }
            None | Some(Fault::LyingSync | Fault::FlippedRead | Fault::NeighbourRead) => {
                effect(&mut state).map_err(|source| DiskError::new(op, file, source))
            }
        }
    }

    /// Counts a call that changes nothing. Returns the fault that was planned for it, if the caller has to carry it out.
    fn look<T>(
        &self,
        op: DiskOp,
        file: &str,
        look: impl FnOnce(&File, Option<Fault>) -> T,
    ) -> Result<T, DiskError> {
        let mut state = self.lock_state();
        if state.crashed {
            return Err(DiskError::new(op, file, io::Error::other("the machine is dead")));
        }
        let fault = state.schedule.next(op);
        match fault {
            Some(Fault::Crash) => {
                state.crashed = true;
                return Err(DiskError::new(op, file, io::Error::other("the machine died")));
            }
            Some(Fault::Error | Fault::LosingSync) => {
                state.failed_look = Some(file.to_owned());
                return Err(DiskError::new(op, file, io::Error::other("input/output error")));
            }
            _ => {}
        }
        match state.names.get(file) {
            Some(inode) => Ok(look(&state.files[inode], fault)),
            None => Err(DiskError::new(op, file, absent())),
        }
    }
}

impl File {
    fn is_last(&self, range: &Range<usize>) -> bool {
        self.last_synced.iter().any(|last| last.start < range.end && range.start < last.end)
    }

    /// Makes the unsynced writes durable. If an earlier sync of the file lied, an honest sync also adds its writes to
    /// the later ones.
    fn sync(&mut self, honest: bool) {
        if !self.unsynced.is_empty() {
            self.last_synced = self.unsynced.iter().map(Write::range).collect();
        }
        for write in std::mem::take(&mut self.unsynced) {
            write.apply(&mut self.durable);
            if let Some(lie) = self.lie.as_mut().filter(|_| honest) {
                lie.after.push(write);
            }
        }
    }
}

fn is_log(file: &str) -> bool {
    file.contains("/log-")
}

/// The range of the bytes of a sector, in a file of `len` bytes.
fn byte_range(sector: usize, len: usize) -> Range<usize> {
    (sector * SECTOR).min(len)..((sector + 1) * SECTOR).min(len)
}

/// Copies the sector before this one over it; for the first sector, the one after it.
fn neighbour(bytes: &mut [u8], sector: usize) {
    let other = if sector == 0 { 1 } else { sector - 1 };
    let (from, to) = (other * SECTOR, sector * SECTOR);
    if bytes.len() >= (from + SECTOR).max(to + SECTOR) {
        bytes.copy_within(from..from + SECTOR, to);
    }
}

impl State {
    fn file(&mut self, name: &str) -> io::Result<&mut File> {
        let inode = self.names.get(name).ok_or_else(absent)?;
        Ok(self.files.get_mut(inode).expect("a name has its file"))
    }

    fn used_bytes(&self) -> u64 {
        self.names.values().map(|inode| self.files[inode].live.len() as u64).sum()
    }

    /// Whether `file` may grow to `len` bytes.
    fn check_space(&mut self, name: &str, len: usize) -> io::Result<()> {
        let grows = len.saturating_sub(self.file(name)?.live.len()) as u64;
        match self.space {
            Some(space) if grows > 0 && self.used_bytes() + grows > space => {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            _ => Ok(()),
        }
    }

    fn dir_of(&mut self, name: &str) -> io::Result<&mut Dir> {
        let dir = name.rsplit_once('/').map_or("", |(dir, _)| dir);
        self.dirs.get_mut(dir).ok_or_else(absent)
    }
}

impl Disk for SimDisk {
    fn lock(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    /// No other process can use this disk, so there is no lock to check and the check cannot fail.
    fn check_lock(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        let mut state = self.lock_state();
        if state.crashed {
            return Err(DiskError::new(DiskOp::List, dir, io::Error::other("the machine is dead")));
        }
        if let Some(fault @ (Fault::Error | Fault::Crash)) = state.schedule.next(DiskOp::List) {
            state.crashed = fault == Fault::Crash;
            return Err(DiskError::new(DiskOp::List, dir, io::Error::other("input/output error")));
        }
        if !state.dirs.contains_key(dir) {
            return Err(DiskError::new(DiskOp::List, dir, absent()));
        }
        let prefix = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let inside = |name: &String| {
            let rest = name.strip_prefix(&prefix).filter(|rest| !rest.is_empty() && !rest.contains('/'));
            rest.map(str::to_owned)
        };
        let mut names: Vec<String> = state
            .names
            .keys()
            .chain(state.dirs.keys().filter(|name| !name.is_empty()))
            .filter_map(inside)
            .collect();
        names.sort();
        Ok(names)
    }

    fn create_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.change(DiskOp::CreateDir, dir, |state| {
            if state.dirs.contains_key(dir) {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            state.dir_of(dir)?.unsynced.push(NameChange::Dir(dir.to_owned()));
            state.dirs.insert(dir.to_owned(), Dir::default());
            state.calls.names += 1;
            Ok(())
        })
    }

    fn create(&mut self, file: &str) -> Result<(), DiskError> {
        self.change(DiskOp::Create, file, |state| {
            if state.names.contains_key(file) {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            state.next_inode += 1;
            let inode = state.next_inode;
            state.dir_of(file)?.unsynced.push(NameChange::Link { name: file.to_owned(), inode });
            state.files.insert(inode, File::default());
            state.names.insert(file.to_owned(), inode);
            state.calls.names += 1;
            Ok(())
        })
    }

    fn open(&mut self, file: &str) -> Result<(), DiskError> {
        self.look(DiskOp::Open, file, |_, _| ())
    }

    fn len(&mut self, file: &str) -> Result<u64, DiskError> {
        self.look(DiskOp::Len, file, |file, _| file.live.len() as u64)
    }

    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        self.look(DiskOp::Read, file, |file, fault| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(file.live.len());
            let found = &file.live[from..file.live.len().min(from.saturating_add(into.len()))];
            into[..found.len()].copy_from_slice(found);
            let (byte, sector) = (found.len() / 3, found.len() / SECTOR / 2);
            let (bit, sectors) =
                (from + byte..from + byte + 1, from + sector * SECTOR..from + (sector + 1) * SECTOR);
            match fault {
                Some(Fault::FlippedRead) if !found.is_empty() && !file.is_last(&bit) => into[byte] ^= 4,
                Some(Fault::NeighbourRead) if !file.is_last(&sectors) => {
                    let before = into.to_vec();
                    neighbour(&mut into[..found.len()], sector);
                    if into[byte_range(sector, found.len())].iter().all(|&byte| byte == 0) {
                        into.copy_from_slice(&before);
                    }
                }
                _ => {}
            }
            found.len()
        })
    }

    fn write_at(&mut self, file: &str, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.change(DiskOp::Write, file, |state| {
            state.calls.writes += 1;
            let offset = usize::try_from(offset).expect("simulated files are small");
            state.check_space(file, offset + bytes.len())?;
            let write = Write::Bytes { offset, bytes: bytes.to_vec() };
            let file = state.file(file)?;
            write.apply(&mut file.live);
            file.unsynced.push(write);
            Ok(())
        })
    }

    fn sync_data(&mut self, file: &str) -> Result<(), DiskError> {
        self.change(DiskOp::Sync, file, |state| {
            state.calls.syncs += 1;
            let synced = state.file(file)?;
            let (any, frames) = (!synced.unsynced.is_empty(), synced.unsynced.iter().any(Write::is_frame));
            synced.sync(true);
            for lie in state.files.values_mut().filter_map(|other| other.lie.as_mut()) {
                lie.syncs += u64::from(if lie.is_log { frames } else { any });
            }
            Ok(())
        })
    }

    fn set_len(&mut self, file: &str, bytes: u64) -> Result<(), DiskError> {
        self.change(DiskOp::SetLen, file, |state| {
            state.calls.writes += 1;
            let len = usize::try_from(bytes).expect("simulated files are small");
            state.check_space(file, len)?;
            let write = Write::SetLen(len);
            let file = state.file(file)?;
            write.apply(&mut file.live);
            file.unsynced.push(write);
            Ok(())
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
        self.change(DiskOp::Rename, from, |state| {
            let inode = state.names.remove(from).ok_or_else(absent)?;
            let change = NameChange::Rename { from: from.to_owned(), to: to.to_owned(), inode };
            state.dir_of(to)?.unsynced.push(change);
            state.names.insert(to.to_owned(), inode);
            state.calls.names += 1;
            Ok(())
        })
    }

    fn remove(&mut self, file: &str) -> Result<(), DiskError> {
        self.change(DiskOp::Remove, file, |state| {
            let inode = state.names.remove(file).ok_or_else(absent)?;
            state.dir_of(file)?.unsynced.push(NameChange::Unlink { name: file.to_owned(), inode });
            state.calls.names += 1;
            Ok(())
        })
    }

    fn sync_dir(&mut self, dir: &str) -> Result<(), DiskError> {
        self.change(DiskOp::SyncDir, dir, |state| {
            state.calls.dir_syncs += 1;
            let State { dirs, durable_names, durable_dirs, .. } = state;
            for change in std::mem::take(&mut dirs.get_mut(dir).ok_or_else(absent)?.unsynced) {
                change.apply(durable_names, durable_dirs);
            }
            Ok(())
        })
    }

    fn close(&mut self, _file: &str) {}

    fn another(&self) -> Self {
        self.clone()
    }

    fn free_bytes(&mut self) -> u64 {
        let state = self.lock_state();
        state.space.map_or(u64::MAX, |space| space.saturating_sub(state.used_bytes()))
    }
}

fn absent() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}
