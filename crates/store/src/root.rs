//! [`Root`]: a data directory that has several shards.

use std::path::{Path, PathBuf};

use tickwheel_engine::ShardId;

use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::fs_disk::FsDisk;
use crate::layout::{META, SHARD, SHARDS, STAMP, folder_of};
use crate::members::Members;
use crate::meta;
use crate::options::{ClockMode, StoreOptions};
use crate::shards_file::{Content, read, write};
use crate::stamp::Stamps;

/// A data directory that has several shards. Each shard has a directory of its own below it: `0000`, `0001` and so on. Such a directory has
/// all files of a directory with one shard, and its `meta` names its shard. The file `shards` beside them tells the number of shards, which
/// never changes.
///
/// The root is locked as long as this value lives. If it was opened to the end ([`made`](Root::made)), the drop renews the stamps: the
/// files of the shards have to be closed before.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    disk: FsDisk,
    content: Content,
    stamps: Stamps,
    /// Whether the stamps were renewed at the opening, so that the drop renews them, too.
    is_open: bool,
}

/// The number of shards that a data directory has. `None`: the path has no data directory. Changes nothing and locks nothing.
///
/// # Errors
/// The directory cannot be read; or the file `shards` is damaged or of a later version, or is missing beside folders
/// of shards.
pub fn shards_of(path: impl AsRef<Path>) -> Result<Option<u32>, OpenError> {
    let path = path.as_ref();
    if !path.is_dir() {
        return Ok(None);
    }
    let mut disk = FsDisk::new(path)?;
    if let Some(content) = read(&mut disk)? {
        return Ok(Some(content.shards));
    }
    let names = disk.list("")?;
    if names.iter().any(|name| name == META || name == SHARD) {
        return Ok(Some(1));
    }
    // Without this check, the caller would be told that a root which lost its file `shards` is no data directory.
    match Members::find(path)? {
        Some(_) => Err(OpenError::no_shards()),
        None => Ok(None),
    }
}

/// Returns the directory of a shard below the root `path`.
#[must_use]
pub fn directory_of(path: impl AsRef<Path>, shard: ShardId) -> PathBuf {
    path.as_ref().join(folder_of(shard))
}

impl Root {
    /// The name of the file that tells the number of shards.
    pub const FILE: &str = SHARDS;
    /// The name of the file by which a start notices that the folder of a shard was replaced.
    pub const STAMP: &str = STAMP;

    /// Opens the root of several shards, and locks it; makes the root if `shards` is above 1 and the place has no data yet. `None`: the
    /// directory has one shard, or will have one. `shards`: the number of shards that the caller wants; `None`: the number that the directory
    /// has, or one.
    ///
    /// # Errors
    /// [`OpenError::OtherShards`] if the directory has another number of shards; [`OpenError::OtherStamp`] if the folder of a shard is a copy
    /// of another moment; [`OpenError::WrongClock`]; the errors of an opening.
    pub fn open(path: &Path, shards: Option<u32>, options: &StoreOptions) -> Result<Option<Self>, OpenError> {
        let found = shards_of(path)?;
        if let (Some(found), Some(wanted)) = (found, shards)
            && found != wanted
        {
            return Err(OpenError::OtherShards { found, wanted });
        }
        let shards = found.or(shards).unwrap_or(1);
        if shards == 1 {
            return Ok(None);
        }
        let mut disk = FsDisk::new(path)?;
        if found.is_none() {
            meta::check_place(&mut disk)?;
        }
        disk.lock().map_err(|error| match error.source.kind() {
            std::io::ErrorKind::WouldBlock => OpenError::Locked { place: error.file },
            _ => OpenError::Io(error),
        })?;
        // Another process may have made the root before this one had the lock.
        let content = match read(&mut disk)? {
            Some(found) if found.shards != shards => {
                return Err(OpenError::OtherShards { found: found.shards, wanted: shards });
            }
            Some(found) if found.clock != options.clock => {
                return Err(OpenError::WrongClock { found: found.clock, wanted: options.clock });
            }
            Some(found) => found,
            None => {
                let StoreOptions { clock, secret, .. } = *options;
                let content = Content { shards, clock, secret, is_made: false };
                write(&mut disk, content)?;
                content
            }
        };
        meta::remove_unfinished(&mut disk, SHARDS)?;
        meta::remove_unfinished(&mut disk, STAMP)?;
        if content.is_made {
            for (shard, directory) in directories(path, shards) {
                if !directory.join(META).exists() {
                    let folder = directory.file_name().unwrap_or_default().to_string_lossy();
                    return Err(OpenError::corrupt(
                        folder,
                        0,
                        format!("the directory of {shard} has no `{META}`"),
                    ));
                }
            }
        }
        let folders = directories("", shards).map(|(shard, _)| format!("{}/{SHARD}", folder_of(shard)));
        let stamps = Stamps::find(&mut disk, options.secret, folders.collect())?;
        Ok(Some(Self { path: path.to_owned(), disk, content, stamps, is_open: false }))
    }

    /// Writes the file `shards` of a new root: it has the shards and the clock of another root that was found. The root has the identity of
    /// the other one, unless the file `shards` of that one cannot be read; then it has an identity of its own, made from `secret`. Returns
    /// whether the identity is the same.
    ///
    /// # Errors
    /// The disk failed.
    pub fn write_again(path: &Path, members: &Members, secret: [u8; 16]) -> Result<bool, DiskError> {
        let kept = members.content.as_ref().ok().map(|content| content.secret);
        let clock = members.clock().unwrap_or(ClockMode::Real);
        let secret = kept.unwrap_or(secret);
        let content = Content { shards: members.shards, clock, secret, is_made: true };
        write(&mut FsDisk::new(path)?.of_maker(), content)?;
        Ok(kept.is_some())
    }

    /// Returns the shards, each with its directory.
    pub fn directories(&self) -> impl Iterator<Item = (ShardId, PathBuf)> {
        directories(&self.path, self.content.shards)
    }

    /// Notes that the directories of all shards are made and durable, and renews the stamps. The caller has opened all shards.
    ///
    /// # Errors
    /// The disk failed.
    pub fn made(&mut self) -> Result<(), DiskError> {
        if !self.content.is_made {
            let content = Content { is_made: true, ..self.content };
            write(&mut self.disk, content)?;
            self.content = content;
        }
        self.stamps.renew(&mut self.disk)?;
        self.is_open = true;
        Ok(())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // Another process may own the directory now if the lock was taken away.
        if self.is_open && self.disk.check_lock().is_ok() {
            // Without new stamps, the next start notices a replaced folder only if it is of before this start.
            let _as_before = self.stamps.renew(&mut self.disk);
        }
    }
}

/// Returns the shards below the root `path`, each with its directory.
fn directories(path: impl AsRef<Path>, count: u32) -> impl Iterator<Item = (ShardId, PathBuf)> {
    let shards = (0..count).filter_map(move |number| ShardId::new(number, count));
    shards.map(move |shard| (shard, directory_of(&path, shard)))
}
