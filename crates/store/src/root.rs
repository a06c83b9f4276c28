//! [`Root`]: a data directory that has several shards.

use std::path::{Path, PathBuf};

use tickwheel_engine::{SHARDS_MAX, ShardId};

use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::fs_disk::FsDisk;
use crate::layout::{HEADER_BYTES, META, SHARD, SHARDS, UNFINISHED_MARK, header, read_own, unfinished};
use crate::meta;
use crate::options::{ClockMode, StoreOptions};

const MAGIC: [u8; 8] = *b"TICKSHDS";
const FORMAT: u32 = 1;
const SEED: u32 = 0;

/// The content of the file `shards`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Content {
    shards: u32,
    clock: ClockMode,
    /// 16 random bytes, from which the identity of the data is made.
    secret: [u8; 16],
    /// Whether the directories of all shards were made. From then on, one that is missing is damage.
    is_made: bool,
}

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
    path.as_ref().join(format!("{:04}", shard.number()))
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

/// Returns the secret of the root at this path, for the identity of its data; `None` if the path is not the root of several shards.
pub(crate) fn secret_of<D: Disk>(disk: &mut D) -> Result<Option<[u8; 16]>, OpenError> {
    Ok(read(disk)?.map(|content| content.secret))
}

fn read<D: Disk>(disk: &mut D) -> Result<Option<Content>, OpenError> {
    let names = disk.list("")?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if !has(SHARDS) {
        return Ok(None);
    }
    if has(UNFINISHED_MARK) {
        return Err(OpenError::Unfinished);
    }
    let mut bytes = [0; HEADER_BYTES + 1];
    let count = disk.read(SHARDS, 0, &mut bytes)?;
    disk.close(SHARDS);
    let own = read_own(&bytes[..count], MAGIC, FORMAT, SEED)
        .map_err(|found| OpenError::newer(SHARDS, found, FORMAT))?
        .ok_or_else(|| OpenError::corrupt(SHARDS, 0, "its checksum does not match"))?;
    let [shards, clock, low, high, is_made, _] = own;
    let shards = u32::try_from(shards).ok().filter(|shards| (2..=SHARDS_MAX).contains(shards));
    let shards = shards.ok_or_else(|| {
        OpenError::corrupt(SHARDS, 16, format!("it has no number of shards from 2 to {SHARDS_MAX}"))
    })?;
    let clock = match clock {
        0 => ClockMode::Real,
        1 => ClockMode::Virtual,
        other => {
            return Err(OpenError::corrupt(SHARDS, 24, format!("it has clock {other}; there are 0 and 1")));
        }
    };
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&low.to_le_bytes());
    secret[8..].copy_from_slice(&high.to_le_bytes());
    Ok(Some(Content { shards, clock, secret, is_made: is_made == 1 }))
}

/// Writes the file `shards`, in the place of the earlier one if there is one. The file is durable when the call returns.
fn write<D: Disk>(disk: &mut D, content: Content) -> Result<(), DiskError> {
    let Content { shards, clock, secret, is_made } = content;
    let clock = match clock {
        ClockMode::Real => 0,
        ClockMode::Virtual => 1,
    };
    let [low, high] = [0, 8].map(|at| crate::layout::le_u64(&secret, at));
    let bytes = header(MAGIC, FORMAT, SEED, [shards.into(), clock, low, high, is_made.into(), 0]);
    let written_as = unfinished(SHARDS);
    if disk.list("")?.iter().any(|name| **name == *written_as) {
        disk.remove(&written_as)?;
    }
    disk.create(&written_as)?;
    disk.write_at(&written_as, 0, &bytes)?;
    disk.sync_data(&written_as)?;
    disk.rename(&written_as, SHARDS)?;
    disk.sync_dir("")
}
