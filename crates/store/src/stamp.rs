//! [`Stamps`]: the files `stamp`, by which a start notices that the folder of a shard is a copy of another moment than its data directory.
//!
//! The data directory has one stamp, and the folder of each shard has one. A renewal draws a number and writes it to the folders, and to the
//! data directory last. An opening renews the stamps, and so does a clean close. A stamp of a folder has two numbers: the new one, and that of
//! the data directory before the renewal. So a folder is of the same moment if one of its two numbers is that of the data directory: a crash
//! between two writes leaves such folders only. The data directory is never ahead of a folder, so an older copy of a folder has neither.

use std::hash::Hasher;
use std::sync::Arc;

use siphasher::sip::SipHasher13;

use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::io::{Call, run_calls};
use crate::layout::{HEADER_BYTES, SHARD, STAMP, header, kind_of, read_own, unfinished};
use crate::meta::remove_unfinished;

const MAGIC: [u8; 8] = *b"TICKSTMP";
const FORMAT: u32 = 1;
const SEED: u32 = 0;

/// The content of a file `stamp`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Stamp {
    /// The number of the last renewal.
    at: u64,
    /// The number of the data directory before that renewal; 0 if it had none.
    before: u64,
}

impl Stamp {
    /// Reads a stamp; `None` if there is no such file.
    fn read<D: Disk>(disk: &mut D, file: &str) -> Result<Option<Self>, OpenError> {
        if !disk.exists(file)? {
            return Ok(None);
        }
        let mut bytes = [0; HEADER_BYTES + 1];
        let count = disk.read(file, 0, &mut bytes)?;
        disk.close(file);
        let own = read_own(&bytes[..count], MAGIC, FORMAT, SEED)
            .map_err(|found| OpenError::other_format(file, found, FORMAT))?
            .ok_or_else(|| OpenError::bad_stamp(file))?;
        let [at, before, ..] = own;
        Ok(Some(Self { at, before }))
    }

    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        header(MAGIC, FORMAT, SEED, [self.at, self.before, 0, 0, 0, 0])
    }

    /// Returns the calls that write this stamp, in the place of the earlier one if there is one. The stamp is durable after the last call.
    fn calls(self, file: &str) -> Vec<Call> {
        let written_as = unfinished(file);
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        vec![
            Call::Create(Arc::clone(&written_as)),
            Call::Write { file: Arc::clone(&written_as), offset: 0, bytes: self.to_bytes().to_vec() },
            Call::Sync(Arc::clone(&written_as)),
            Call::Rename { from: written_as, to: file.into() },
            Call::SyncDir(folder.into()),
            Call::Close(file.into()),
        ]
    }
}

/// Returns the name of the stamp in the folder of a shard.
pub(crate) fn stamp_in(folder: &str) -> String {
    format!("{folder}/{STAMP}")
}

/// Gives the new directory `to` of one of several shards the stamp of the folder that was salvaged, if it can be read: the new folder can then
/// take the place of the salvaged one.
///
/// # Errors
/// The disk of `to` failed.
pub(crate) fn keep_stamp<D: Disk, T: Disk>(from: &mut D, to: &mut T) -> Result<(), DiskError> {
    match Stamp::read(from, &stamp_in(SHARD)) {
        Ok(Some(stamp)) => run_calls(to, &stamp.calls(&stamp_in(SHARD)), &mut Vec::new()),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// Returns the names and the contents of the stamps of a new copy: that of the data directory, and that of the folder of each shard.
pub(crate) fn stamps_of_copy(number: u64) -> [(String, Vec<u8>); 2] {
    let stamp = Stamp { at: number.max(1), before: 0 };
    [STAMP.to_owned(), stamp_in(SHARD)].map(|name| (name, stamp.to_bytes().to_vec()))
}

/// Compares the stamps of the folders of shards with the stamp of the data directory, and returns what is wrong. If the
/// owner of a data directory has removed its stamp, its folders are taken as they are. A folder without data
/// is left to the opening of the shard.
///
/// # Errors
/// The stamp of the data directory is damaged, or of a later version; or a stamp cannot be read.
pub(crate) fn check_stamps<D: Disk>(disk: &mut D, folders: &[String]) -> Result<Vec<OpenError>, OpenError> {
    let Some(root) = Stamp::read(disk, STAMP)? else { return Ok(Vec::new()) };
    let mut wrong = Vec::new();
    for folder in folders {
        match Stamp::read(disk, &stamp_in(folder)) {
            Ok(Some(stamp)) if stamp.at == root.at || stamp.before == root.at => {}
            Ok(None) if !has_data(disk, folder)? => {}
            Ok(other) => wrong.push(OpenError::other_stamp(folder, other.map(|stamp| stamp.at), root.at)),
            Err(OpenError::Io(error)) => return Err(error.into()),
            Err(error) => wrong.push(error),
        }
    }
    Ok(wrong)
}

fn has_data<D: Disk>(disk: &mut D, folder: &str) -> Result<bool, OpenError> {
    match disk.list(folder) {
        Ok(names) => Ok(names.iter().any(|name| kind_of(name).is_some())),
        Err(error) if error.source.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The stamps of a data directory that this process has locked.
#[derive(Debug)]
pub(crate) struct Stamps {
    /// From the secret and the former number, the next number is made.
    secret: [u8; 16],
    /// The folders of the shards, as names below the data directory.
    folders: Vec<String>,
    /// The number in the data directory; 0 if it has no stamp.
    at: u64,
    /// Whether `at` is known. It is not after a write of the data directory's stamp that failed. Then nothing is renewed any more.
    is_known: bool,
}

impl Stamps {
    /// Reads and compares the stamps of the directory `disk`. `secret`: 16 random bytes.
    ///
    /// # Errors
    /// [`OpenError::OtherStamp`]; a stamp is damaged, of a later version, or cannot be read.
    pub(crate) fn find<D: Disk>(
        disk: &mut D,
        secret: [u8; 16],
        folders: Vec<String>,
    ) -> Result<Self, OpenError> {
        if let Some(wrong) = check_stamps(disk, &folders)?.into_iter().next() {
            return Err(wrong);
        }
        let at = Stamp::read(disk, STAMP)?.map_or(0, |stamp| stamp.at);
        Ok(Self { secret, folders, at, is_known: true })
    }

    /// Returns the number that the next renewal writes.
    fn next(&self) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        hasher.write(b"stamp");
        hasher.write(&self.at.to_le_bytes());
        hasher.finish().max(1)
    }

    /// Returns the calls of a renewal. The stamp of the data directory is written last, when those of all folders are durable.
    pub(crate) fn calls(&self) -> Vec<Call> {
        if !self.is_known {
            return Vec::new();
        }
        let next = Stamp { at: self.next(), before: self.at };
        let folders = self.folders.iter().flat_map(|folder| next.calls(&stamp_in(folder)));
        folders.chain(next.calls(STAMP)).collect()
    }

    /// Takes in whether all calls of a renewal succeeded.
    pub(crate) fn renewed(&mut self, all: bool) {
        if all {
            self.at = self.next();
        } else {
            self.is_known = false;
        }
    }

    /// Renews the stamps. A full disk is no error: the stamps are then as before, or a later opening takes them as of one moment.
    ///
    /// # Errors
    /// The disk failed.
    pub(crate) fn renew<D: Disk>(&mut self, disk: &mut D) -> Result<(), DiskError> {
        self.remove_unfinished(disk)?;
        let result = run_calls(disk, &self.calls(), &mut Vec::new());
        self.renewed(result.is_ok() && self.is_known);
        match result {
            Err(error) if error.is_full() => self.remove_unfinished(disk),
            result => result,
        }
    }

    fn remove_unfinished<D: Disk>(&self, disk: &mut D) -> Result<(), DiskError> {
        self.folders.iter().try_for_each(|folder| remove_unfinished(disk, &stamp_in(folder)))?;
        remove_unfinished(disk, STAMP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskOp;
    use std::collections::BTreeMap;
    use std::io::ErrorKind;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A disk in memory, whose changes are durable at once.
    #[derive(Clone, Default)]
    struct Files(BTreeMap<String, Vec<u8>>);

    impl Files {
        fn file(&mut self, op: DiskOp, file: &str) -> Result<&mut Vec<u8>, DiskError> {
            self.0.get_mut(file).ok_or_else(|| DiskError::new(op, file, ErrorKind::NotFound.into()))
        }
    }

    impl Disk for Files {
        fn lock(&mut self) -> Result<(), DiskError> {
            Ok(())
        }
        fn list(&mut self, dir: &str) -> Result<Vec<String>, DiskError> {
            let folder = if dir.is_empty() { String::new() } else { format!("{dir}/") };
            let names = self.0.keys().filter_map(|name| name.strip_prefix(&folder));
            Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
        }
        fn create_dir(&mut self, _: &str) -> Result<(), DiskError> {
            Ok(())
        }
        fn create(&mut self, file: &str) -> Result<(), DiskError> {
            match self.0.insert(file.to_owned(), Vec::new()) {
                None => Ok(()),
                Some(_) => Err(DiskError::new(DiskOp::Create, file, ErrorKind::AlreadyExists.into())),
            }
        }
        fn open(&mut self, file: &str) -> Result<(), DiskError> {
            self.file(DiskOp::Open, file).map(drop)
        }
        fn len(&mut self, file: &str) -> Result<u64, DiskError> {
            self.file(DiskOp::Len, file).map(|bytes| bytes.len() as u64)
        }
        fn read(&mut self, file: &str, _: u64, into: &mut [u8]) -> Result<usize, DiskError> {
            let bytes = self.file(DiskOp::Read, file)?;
            let count = bytes.len().min(into.len());
            into[..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        }
        fn write_at(&mut self, file: &str, _: u64, bytes: &[u8]) -> Result<(), DiskError> {
            bytes.clone_into(self.file(DiskOp::Write, file)?);
            Ok(())
        }
        fn sync_data(&mut self, file: &str) -> Result<(), DiskError> {
            self.file(DiskOp::Sync, file).map(drop)
        }
        fn set_len(&mut self, file: &str, _: u64) -> Result<(), DiskError> {
            self.file(DiskOp::SetLen, file).map(drop)
        }
        fn rename(&mut self, from: &str, to: &str) -> Result<(), DiskError> {
            let bytes = self.file(DiskOp::Rename, from)?.clone();
            self.remove(from)?;
            self.0.insert(to.to_owned(), bytes);
            Ok(())
        }
        fn remove(&mut self, file: &str) -> Result<(), DiskError> {
            self.file(DiskOp::Remove, file)?;
            self.0.remove(file);
            Ok(())
        }
        fn sync_dir(&mut self, _: &str) -> Result<(), DiskError> {
            Ok(())
        }
        fn close(&mut self, _: &str) {}
        fn another(&self) -> Self {
            self.clone()
        }
        fn free_bytes(&mut self) -> u64 {
            0
        }
    }

    fn folders() -> Vec<String> {
        ["0000/shard-0000", "0001/shard-0000"].map(str::to_owned).into()
    }

    /// Returns a data directory of two shards with data and without stamps.
    fn data() -> Files {
        let log = |folder: &String| (format!("{folder}/log-00000001"), Vec::new());
        Files(folders().iter().map(log).collect())
    }

    /// Opens the data directory with a secret of its own, as each process does.
    fn find(files: &mut Files) -> Result<Stamps, OpenError> {
        static OPENED: AtomicU64 = AtomicU64::new(1);
        let secret = u128::from(OPENED.fetch_add(1, Ordering::Relaxed)).to_le_bytes();
        Stamps::find(files, secret, folders())
    }

    /// Opens the data directory, and ends the renewal after `count` calls as a crash does.
    fn crash_after(files: &mut Files, count: usize) {
        let stamps = find(files).expect("a crash leaves a directory that opens");
        stamps.remove_unfinished(files).expect("removed");
        let calls = stamps.calls();
        run_calls(files, &calls[..count.min(calls.len())], &mut Vec::new()).expect("they succeed");
    }

    fn renew(files: &mut Files) {
        let mut stamps = find(files).expect("it opens");
        stamps.renew(files).expect("renewed");
    }

    /// Checks that a directory is refused with the stamp of another moment in one of its folders. Without a stamp of its own, nothing is
    /// compared.
    fn refuses(files: &Files, older: &Files) {
        for folder in folders() {
            let name = stamp_in(&folder);
            let mut mixed = files.clone();
            match older.0.get(&name) {
                Some(stamp) => mixed.0.insert(name, stamp.clone()),
                None => mixed.0.remove(&name),
            };
            let refused = find(&mut mixed).expect_err("it is of another moment");
            assert!(
                matches!(&refused, OpenError::OtherStamp { folder: told, .. } if folder.starts_with(told))
            );
        }
    }

    #[test]
    fn a_crash_at_any_call_opens_and_every_older_folder_is_refused() {
        const CALLS: usize = 18;
        assert_eq!(find(&mut data()).expect("no stamps yet").calls().len(), CALLS);
        for (first, second) in (0..=CALLS).flat_map(|first| (0..=CALLS).map(move |second| (first, second))) {
            let mut files = data();
            let mut before = vec![files.clone()];
            renew(&mut files);
            before.push(files.clone());
            renew(&mut files);
            before.push(files.clone());
            crash_after(&mut files, first);
            before.push(files.clone());
            crash_after(&mut files, second);
            before.push(files.clone());
            renew(&mut files);
            let mut same = files.clone();
            find(&mut same).expect("its own folders are of one moment");
            before.iter().for_each(|older| refuses(&files, older));
        }
    }

    #[test]
    fn a_directory_without_a_stamp_takes_its_folders_as_they_are() {
        let mut files = data();
        renew(&mut files);
        let older = files.clone();
        renew(&mut files);
        refuses(&files, &older);
        // The advice of the error.
        let mut accepted = files.clone();
        accepted.0.remove(STAMP);
        accepted.0.insert("0001/shard-0000/stamp".to_owned(), b"damaged".to_vec());
        renew(&mut accepted);
        find(&mut accepted).expect("the folders are taken as they are");
        refuses(&accepted, &files);
    }

    #[test]
    fn a_damaged_stamp_is_told_and_a_folder_without_data_is_left_to_its_opening() {
        let mut files = data();
        renew(&mut files);
        for name in [STAMP, "0001/shard-0000/stamp"] {
            let mut damaged = files.clone();
            damaged.0.get_mut(name).expect("it is there")[20] ^= 1;
            let told = find(&mut damaged).expect_err("damaged").to_string();
            assert!(told.starts_with(name) && told.contains("rm DIR/stamp"), "{told}");
        }
        let mut lost = files.clone();
        lost.0.retain(|name, _| !name.starts_with("0001/"));
        find(&mut lost).expect("the opening of the shard tells that its data is missing");
    }

    #[test]
    fn the_stamps_of_a_copy_are_of_one_moment() {
        let mut files = data();
        let [of_root, of_folder] = stamps_of_copy(7);
        files.0.extend([of_root]);
        for folder in ["0000", "0001"] {
            files.0.insert(format!("{folder}/{}", of_folder.0), of_folder.1.clone());
        }
        find(&mut files).expect("it opens");
        let mut other = data();
        let [_, of_other] = stamps_of_copy(8);
        other.0.extend(folders().iter().map(|folder| (stamp_in(folder), of_other.1.clone())));
        refuses(&files, &other);
    }

    #[test]
    fn after_a_failed_write_nothing_is_renewed_any_more() {
        let mut files = data();
        renew(&mut files);
        let mut stamps = find(&mut files).expect("it opens");
        stamps.renewed(false);
        let before = files.clone();
        stamps.renew(&mut files).expect("nothing is written");
        assert_eq!(files.0, before.0);
    }
}
