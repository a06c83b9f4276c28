//! A disk with a journal. It is one file in a FUSE file system of the test, for a loop device. Each write and each
//! flush is recorded in order. So the test can make the disk as it would be after a power failure at any moment.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};

/// The size of the disk (bytes), enough for a few log files and a checkpoint of the tests.
pub(crate) const DISK_BYTES: u64 = 192 << 20;
pub(crate) const BLOCK: usize = 4_096;
/// The name of the one file.
pub(crate) const FILE: &str = "disk";
const FILE_INODE: INodeNo = INodeNo(2);
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// The events of the disk, in order.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Write {
        offset: u64,
        bytes: Arc<[u8]>,
    },
    /// A write of zeroes of this length: most of a new log file.
    Zero {
        offset: u64,
        bytes: usize,
    },
    /// A flush: everything before it is durable.
    Flush,
    /// A client sent a call, or got an answer.
    Mark,
}

/// The content of a disk by blocks. A missing block has zeroes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Image {
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let (block, within) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let next = (BLOCK - within).min(bytes.len() - done);
            if next == BLOCK && bytes[done..done + next].iter().all(|byte| *byte == 0) {
                self.blocks.remove(&block);
                done += next;
                continue;
            }
            let content = self.blocks.entry(block).or_insert_with(|| vec![0; BLOCK].into());
            content[within..within + next].copy_from_slice(&bytes[done..done + next]);
            done += next;
        }
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let (block, within) = (at / BLOCK as u64, (at % BLOCK as u64) as usize);
            let next = (BLOCK - within).min(into.len() - done);
            if let Some(content) = self.blocks.get(&block) {
                into[done..done + next].copy_from_slice(&content[within..within + next]);
            }
            done += next;
        }
    }

    /// Applies a write, or only its first `sectors` sectors.
    pub(crate) fn apply(&mut self, entry: &Entry, sectors: usize) {
        let most = sectors.saturating_mul(512);
        match entry {
            Entry::Write { offset, bytes } => self.write(*offset, &bytes[..bytes.len().min(most)]),
            Entry::Zero { offset, bytes } => self.write(*offset, &vec![0; (*bytes).min(most)]),
            Entry::Flush | Entry::Mark => {}
        }
    }
}

#[derive(Debug, Default)]
struct Memory {
    entries: Vec<Entry>,
    now: Image,
}

/// The journal of one disk; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Journal {
    memory: Arc<Mutex<Memory>>,
}

impl Journal {
    /// Records that a client is about to send a call or has just got an answer. Returns the number of the event.
    pub(crate) fn mark(&self) -> u64 {
        let mut memory = self.lock();
        memory.entries.push(Entry::Mark);
        memory.entries.len() as u64 - 1
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.lock().entries.clone()
    }

    /// Mounts the disk as a file below `directory`, until the session ends.
    pub(crate) fn mount(&self, directory: &Path) -> BackgroundSession {
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("tickwheel-faults".to_owned()), MountOption::RW];
        fuser::spawn_mount(Shown(self.clone()), directory, &config).expect("mount a file system by FUSE")
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().expect("nobody panics while holding it")
    }
}

/// The file system with the disk's file.
struct Shown(Journal);

impl Shown {
    fn attributes(inode: INodeNo) -> FileAttr {
        let is_file = inode == FILE_INODE;
        FileAttr {
            ino: inode,
            size: if is_file { DISK_BYTES } else { 0 },
            blocks: if is_file { DISK_BYTES / 512 } else { 0 },
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: if is_file { 0o600 } else { 0o700 },
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4_096,
        }
    }
}

impl Filesystem for Shown {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == FILE {
            reply.entry(&FOR_EVER, &Self::attributes(FILE_INODE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOR_EVER, &Self::attributes(inode));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // No cache stands between the loop device and this file system.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes =
            vec![0; size.min(u32::try_from(DISK_BYTES.saturating_sub(offset)).unwrap_or(size)) as usize];
        self.0.lock().now.read(offset, &mut bytes);
        reply.data(&bytes);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let entry = match bytes.iter().all(|byte| *byte == 0) {
            true => Entry::Zero { offset, bytes: bytes.len() },
            false => Entry::Write { offset, bytes: bytes.into() },
        };
        let mut memory = self.0.lock();
        memory.now.write(offset, bytes);
        memory.entries.push(entry);
        drop(memory);
        reply.written(u32::try_from(bytes.len()).expect("one request"));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // The close of a descriptor; it promises nothing.
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        // A flush of the loop device arrives as fsync.
        self.0.lock().entries.push(Entry::Flush);
        reply.ok();
    }
}
