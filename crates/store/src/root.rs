//! [`Root`]: a data directory that has several shards.

use std::path::{Path, PathBuf};

use tickwheel_engine::ShardId;

use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::fs_disk::FsDisk;
use crate::layout::{META, SHARD, SHARDS, folder_of};
use crate::members::Members;
use crate::meta;
use crate::options::{ClockMode, StoreOptions};
use crate::shards_file::{Content, read, write};

/// A data directory that has several shards. Each shard has a directory of its own below it: `0000`, `0001` and so on. Such a directory has
/// all files of a directory with one shard, and its `meta` names its shard. The file `shards` beside them tells the number of shards, which
/// never changes.
///
/// The root is locked as long as this value lives.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    disk: FsDisk,
    content: Content,
}

/// The number of shards that a data directory has. `None`: the path has no data directory. Changes nothing and locks nothing.
///
/// # Errors
/// The directory cannot be read; or the file `shards` is damaged or of a later version.
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
    Ok(names.iter().any(|name| name == META || name == SHARD).then_some(1))
}

/// Returns the directory of a shard below the root `path`.
#[must_use]
pub fn directory_of(path: impl AsRef<Path>, shard: ShardId) -> PathBuf {
    path.as_ref().join(folder_of(shard))
}

impl Root {
    /// The name of the file that tells the number of shards.
    pub const FILE: &str = SHARDS;

    /// Opens the root of several shards, and locks it; makes the root if `shards` is above 1 and the place has no data yet. `None`: the
    /// directory has one shard, or will have one. `shards`: the number of shards that the caller wants; `None`: the number that the directory
    /// has, or one.
    ///
    /// # Errors
    /// [`OpenError::OtherShards`] if the directory has another number of shards; [`OpenError::WrongClock`]; the errors of an opening.
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
        let root = Self { path: path.to_owned(), disk, content };
        if content.is_made {
            for (shard, directory) in root.directories() {
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
        Ok(Some(root))
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
        let count = self.content.shards;
        (0..count)
            .filter_map(move |number| ShardId::new(number, count))
            .map(|shard| (shard, directory_of(&self.path, shard)))
    }

    /// Notes that the directories of all shards are made and durable.
    ///
    /// # Errors
    /// The disk failed.
    pub fn made(&mut self) -> Result<(), DiskError> {
        if self.content.is_made {
            return Ok(());
        }
        let content = Content { is_made: true, ..self.content };
        write(&mut self.disk, content)?;
        self.content = content;
        Ok(())
    }
}
