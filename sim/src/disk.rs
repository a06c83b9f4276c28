//! [`SimDisk`]: a disk that forgets what was not synced, in every way a disk may.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use tickwheel_store::{Disk, DiskError, DiskOp};

use crate::rng::Rng;

/// A disk in memory that knows what is durable and what a crash may still take.
///
/// For each file it keeps the durable bytes and the list of writes since the last sync, for each directory the durable
/// names and the list of changes since the last sync. [`crash`](Self::crash) keeps any subset of what was not synced, in
/// any order, some of it torn. Clones are the same disk; [`image`](Self::image) makes another one.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// A fault that is to happen at a call.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The machine dies during the call. Every later call fails until [`SimDisk::crash`].
    Crash,
    /// The call fails and changes nothing; for a sync, what it covered stays as it was.
    Error,
    /// A sync fails, and what it covered is gone from the disk though reads still show it: the next sync succeeds. A call
    /// that is no sync fails like [`Fault::Error`].
    LosingSync,
    /// The call fails for want of space.
    Full,
}

/// How many calls of each kind there were, for reports.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Calls {
    /// Writes and changes of length.
    pub writes: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Files made, renamed, removed.
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
    /// Calls that change something, since the disk was made.
    changes: u64,
    faults: BTreeMap<u64, Fault>,
    /// Bytes that all files may have together; `None` for no bound.
    space: Option<u64>,
    crashed: bool,
    calls: Calls,
}

type Inode = u64;

#[derive(Clone, Debug, Default)]
struct File {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Write>,
}

#[derive(Clone, Debug)]
enum Write {
    Bytes { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

#[derive(Clone, Debug, Default)]
struct Dir {
    unsynced: Vec<NameChange>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Dir(String),
    Link { name: String, inode: Inode },
    Unlink { name: String, inode: Inode },
    Rename { from: String, to: String, inode: Inode },
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        let disk = Self::default();
        disk.lock_state().dirs.insert(String::new(), Dir::default());
        disk
    }

    /// Another disk with the same content, without faults.
    #[must_use]
    pub fn image(&self) -> Self {
        let mut state = self.lock_state().clone();
        state.faults.clear();
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Lets `fault` happen at the `nth` changing call from now, counted from 1.
    pub fn fail_at(&self, nth: u64, fault: Fault) {
        let mut state = self.lock_state();
        let at = state.changes + nth;
        state.faults.insert(at, fault);
    }

    /// Takes back all faults that have not happened.
    pub fn forget_faults(&self) {
        self.lock_state().faults.clear();
    }

    /// Lets all files have so many bytes together, or as many as they like. A write that would take more fails for want of
    /// space and changes nothing. What is there stays, even if it is more.
    pub fn set_space(&self, bytes: Option<u64>) {
        self.lock_state().space = bytes;
    }

    /// Bytes that all files have together.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.lock_state().used_bytes()
    }

    /// Calls that changed something so far.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.lock_state().changes
    }

    /// Whether the machine has died at a [`Fault::Crash`] and was not started again.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        self.lock_state().crashed
    }

    /// Calls by kind.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.lock_state().calls
    }

    /// The files there are, with their lengths, for reports.
    #[must_use]
    pub fn files(&self) -> Vec<(String, usize)> {
        let state = self.lock_state();
        state.names.iter().map(|(name, inode)| (name.clone(), state.files[inode].live.len())).collect()
    }

    /// Turns one bit of a file, in the live and in the durable bytes: damage to what had been synced.
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

    /// The power goes: of what was not synced any part stays, in any order, some of it torn. The disk can be used again.
    pub fn crash(&self, rng: &mut Rng) {
        let mut state = self.lock_state();
        let State { files, names, durable_names, dirs, durable_dirs, faults, crashed, calls, .. } =
            &mut *state;
        for dir in dirs.values_mut() {
            // Some file systems keep the order of such changes, others promise nothing.
            let keep_percent = rng.pick(&[0, 50, 90, 100]);
            for change in std::mem::take(&mut dir.unsynced) {
                if rng.chance(keep_percent) {
                    change.apply(durable_names, durable_dirs);
                } else {
                    calls.damaged += 1;
                }
            }
        }
        for file in files.values_mut() {
            let mut unsynced = std::mem::take(&mut file.unsynced);
            let all = unsynced.len();
            if rng.chance(50) {
                rng.shuffle(&mut unsynced);
            }
            let keep_percent = rng.pick(&[0, 50, 90, 100]);
            unsynced.retain(|_| rng.chance(keep_percent));
            calls.damaged += (all - unsynced.len()) as u64;
            for write in unsynced {
                calls.damaged += u64::from(write.apply_torn(&mut file.durable, rng));
            }
            file.live.clone_from(&file.durable);
        }
        names.clone_from(durable_names);
        files.retain(|inode, _| names.values().any(|kept| kept == inode));
        dirs.retain(|dir, _| dir.is_empty() || durable_dirs.contains(dir));
        faults.clear();
        *crashed = false;
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds the disk")
    }

    /// Counts a changing call and lets the fault that was set for it happen.
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
        state.changes += 1;
        let now = state.changes;
        match state.faults.remove(&now) {
            Some(Fault::Crash) => {
                state.crashed = true;
                // It died in the middle: the change is among those that may stay. A sync has then promised nothing.
                if !matches!(op, DiskOp::Sync | DiskOp::SyncDir) {
                    let _ = effect(&mut state);
                }
                Err(failed(io::ErrorKind::Other, "the machine died"))
            }
            Some(Fault::Full) => Err(failed(io::ErrorKind::StorageFull, "no space left")),
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
            None => effect(&mut state).map_err(|source| DiskError::new(op, file, source)),
        }
    }

    fn look<T>(&self, op: DiskOp, file: &str, look: impl FnOnce(&File) -> T) -> Result<T, DiskError> {
        let state = self.lock_state();
        if state.crashed {
            return Err(DiskError::new(op, file, io::Error::other("the machine is dead")));
        }
        match state.names.get(file) {
            Some(inode) => Ok(look(&state.files[inode])),
            None => Err(DiskError::new(op, file, absent())),
        }
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

    /// Whether `file` may have so many bytes.
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

impl Write {
    fn apply(&self, bytes_of_file: &mut Vec<u8>) {
        match self {
            Self::Bytes { offset, bytes } => {
                let end = offset + bytes.len();
                if bytes_of_file.len() < end {
                    bytes_of_file.resize(end, 0);
                }
                bytes_of_file[*offset..end].copy_from_slice(bytes);
            }
            Self::SetLen(len) => bytes_of_file.resize(*len, 0),
        }
    }

    /// Applies a part of the write, or all of it. Returns whether it was a part.
    fn apply_torn(&self, durable: &mut Vec<u8>, rng: &mut Rng) -> bool {
        let Self::Bytes { offset, bytes } = self else {
            self.apply(durable);
            return false;
        };
        if bytes.is_empty() || rng.chance(50) {
            self.apply(durable);
            return false;
        }
        let unit = rng.pick(&[1, 512, 4_096]);
        let units = bytes.len().div_ceil(unit);
        let old_len = durable.len();
        let mode = rng.below(4);
        let kept = rng.index(units + 1);
        for at in 0..units {
            let keeps = match mode {
                0 => rng.chance(50),     // any of its sectors
                1 => at >= units - kept, // its end
                _ => at < kept,          // its beginning
            };
            let part = &bytes[at * unit..bytes.len().min((at + 1) * unit)];
            if keeps {
                Self::Bytes { offset: offset + at * unit, bytes: part.to_vec() }.apply(durable);
            } else if mode == 3 && offset + at * unit < durable.len() && rng.chance(20) {
                // Garbage where the write was going.
                let garbage = part.iter().map(|_| rng.next_u64() as u8).collect();
                Self::Bytes { offset: offset + at * unit, bytes: garbage }.apply(durable);
            }
        }
        if rng.chance(20) && old_len < offset + bytes.len() {
            // The length grew, the data did not come.
            durable.resize(offset + bytes.len(), 0);
        }
        true
    }
}

impl NameChange {
    /// Applies the change to names that may not be those it was made for, because an earlier one was lost.
    fn apply(self, names: &mut BTreeMap<String, Inode>, dirs: &mut Vec<String>) {
        match self {
            Self::Dir(name) => {
                if !dirs.contains(&name) {
                    dirs.push(name);
                }
            }
            Self::Link { name, inode } => {
                names.insert(name, inode);
            }
            Self::Unlink { name, inode } => {
                if names.get(&name) == Some(&inode) {
                    names.remove(&name);
                }
            }
            Self::Rename { from, to, inode } => {
                if names.get(&from) == Some(&inode) {
                    names.remove(&from);
                }
                names.insert(to, inode);
            }
        }
    }
}

impl Disk for SimDisk {
    fn lock(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
        let state = self.lock_state();
        if state.crashed {
            return Err(DiskError::new(DiskOp::List, dir, io::Error::other("the machine is dead")));
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
        self.look(DiskOp::Open, file, |_| ())
    }

    fn len(&mut self, file: &str) -> Result<u64, DiskError> {
        self.look(DiskOp::Len, file, |file| file.live.len() as u64)
    }

    fn read(&mut self, file: &str, offset: u64, into: &mut [u8]) -> Result<usize, DiskError> {
        self.look(DiskOp::Read, file, |file| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(file.live.len());
            let found = &file.live[from..file.live.len().min(from.saturating_add(into.len()))];
            into[..found.len()].copy_from_slice(found);
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
            let file = state.file(file)?;
            for write in std::mem::take(&mut file.unsynced) {
                write.apply(&mut file.durable);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn written(disk: &mut SimDisk, bytes: &[u8]) {
        disk.create("f").expect("new");
        disk.write_at("f", 0, bytes).expect("there");
    }

    fn content(disk: &mut SimDisk) -> Option<Vec<u8>> {
        let len = disk.len("f").ok()?;
        let mut bytes = vec![0; len as usize];
        disk.read("f", 0, &mut bytes).expect("there");
        Some(bytes)
    }

    #[test]
    fn what_was_synced_survives_every_crash() {
        for seed in 0..200 {
            let mut disk = SimDisk::new();
            written(&mut disk, b"kept");
            disk.sync_data("f").expect("there");
            disk.sync_dir("").expect("there");
            disk.write_at("f", 4, b" or not").expect("there");
            disk.crash(&mut Rng::new(seed));
            let after = content(&mut disk).expect("the name was synced");
            assert_eq!(after[..4], *b"kept", "seed {seed}");
        }
    }

    #[test]
    fn what_was_not_synced_may_stay_go_or_be_torn() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..500 {
            let mut disk = SimDisk::new();
            written(&mut disk, b"old!");
            disk.sync_data("f").expect("there");
            disk.sync_dir("").expect("there");
            disk.write_at("f", 0, b"new!").expect("there");
            disk.crash(&mut Rng::new(seed));
            seen.insert(content(&mut disk).expect("the name was synced"));
        }
        for wanted in [*b"old!", *b"new!", *b"ned!", *b"nld!"] {
            assert!(
                seen.contains(wanted.as_slice()),
                "{:?} never happened",
                String::from_utf8_lossy(&wanted)
            );
        }
    }

    #[test]
    fn a_name_that_was_not_synced_may_be_gone_though_its_data_was() {
        let gone = (0..100).filter(|&seed| {
            let mut disk = SimDisk::new();
            written(&mut disk, b"data");
            disk.sync_data("f").expect("there");
            disk.crash(&mut Rng::new(seed));
            content(&mut disk).is_none()
        });
        assert!((10..90).contains(&gone.count()));
    }

    #[test]
    fn a_losing_sync_shows_the_data_until_the_crash() {
        let mut disk = SimDisk::new();
        written(&mut disk, b"old!");
        disk.sync_data("f").expect("there");
        disk.sync_dir("").expect("there");
        disk.write_at("f", 0, b"new!").expect("there");
        disk.fail_at(1, Fault::LosingSync);
        disk.sync_data("f").expect_err("it was to fail");
        disk.sync_data("f").expect("the next one succeeds");
        assert_eq!(content(&mut disk).as_deref(), Some(b"new!".as_slice()));
        disk.crash(&mut Rng::new(1));
        assert_eq!(content(&mut disk).as_deref(), Some(b"old!".as_slice()));
    }

    #[test]
    fn a_full_disk_takes_nothing_that_grows() {
        let mut disk = SimDisk::new();
        written(&mut disk, b"1234");
        disk.set_space(Some(6));
        assert_eq!(disk.free_bytes(), 2);
        let error = disk.write_at("f", 4, b"567").expect_err("there is no space");
        assert!(error.is_full(), "{error}");
        assert_eq!(content(&mut disk).as_deref(), Some(b"1234".as_slice()));
        disk.write_at("f", 1, b"xxxxx").expect("there is space");
        disk.set_space(Some(0));
        disk.write_at("f", 0, b"yyyyyy").expect("it does not grow");
        disk.remove("f").expect("there");
        assert_eq!(disk.used_bytes(), 0);
    }

    #[test]
    fn a_dead_machine_answers_nothing_until_it_is_started_again() {
        let mut disk = SimDisk::new();
        disk.fail_at(2, Fault::Crash);
        disk.create("f").expect("before");
        disk.write_at("f", 0, b"x").expect_err("it died here");
        disk.sync_data("f").expect_err("dead");
        disk.len("f").expect_err("dead");
        disk.crash(&mut Rng::new(1));
        assert!(!disk.is_crashed());
        disk.list("").expect("alive");
    }
}
