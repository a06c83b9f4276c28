//! The file `meta`: the properties of the data directory.

use tickwheel_engine::{SHARDS_MAX, ShardId};

use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::fs_disk::FsDisk;
use crate::layout::{
    HEADER_BYTES, META, SHARD, SHARDS, UNFINISHED_MARK, header, kind_of, le_u64, read_own, unfinished,
};
use crate::options::{ClockMode, StoreOptions};

const MAGIC: [u8; 8] = *b"TICKWHEL";
/// The format of the directory. The number rises with each change of the format of a file, and with each new kind of record. So an older
/// release refuses the directory by its format.
pub const FORMAT: u32 = 1;
/// The offsets of the clock (8 bytes) and of the secret (16 bytes) in `meta`.
pub(crate) const CLOCK_AT: usize = 24;
pub(crate) const SECRET_AT: usize = 32;
/// The offsets of the number of shards and of the number of the directory's shard (8 bytes each) in `meta`.
pub(crate) const SHARDS_AT: usize = 16;
pub(crate) const SHARD_AT: usize = 56;
/// The seed of the checksum of `meta`. The seed is not secret, because the secret is in `meta` itself.
const SEED: u32 = 0;

/// The content of `meta`: the properties of the directory.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    pub(crate) clock: ClockMode,
    pub(crate) secret: [u8; 16],
    /// Whether a log file and the note of the newest one were made durable. Before that, the store acknowledges no call. After that, the
    /// directory always has both.
    pub(crate) has_log: bool,
    /// The shard of the data set that the directory has.
    pub(crate) shard: ShardId,
}

impl Meta {
    pub(crate) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let (clock, secret) = (clock_number(self.clock), secret_numbers(&self.secret));
        let (shards, number) = (self.shard.count().into(), self.shard.number().into());
        header(MAGIC, FORMAT, SEED, [shards, clock, secret[0], secret[1], u64::from(self.has_log), number])
    }

    /// Decodes the bytes of `meta`.
    ///
    /// # Errors
    /// The bytes are damaged, or of another format.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, OpenError> {
        let own = read_own(bytes, MAGIC, FORMAT, SEED)
            .map_err(|found| OpenError::other_format(META, found, FORMAT))?
            .ok_or_else(|| OpenError::corrupt(META, 0, "its checksum does not match"))?;
        let [shards, clock, low, high, has_log, number] = own;
        let Some(shard) = shard_of(number, shards) else {
            let what = format!("it names shard {number} of {shards}; there are 1 to {SHARDS_MAX}");
            return Err(OpenError::corrupt(META, SHARDS_AT as u64, what));
        };
        let clock = clock_of(clock, META)?;
        let secret = secret_of([low, high]);
        Ok(Self { clock, secret, has_log: has_log == 1, shard })
    }
}

/// Returns the number of a clock in the header of a file.
pub(crate) fn clock_number(clock: ClockMode) -> u64 {
    match clock {
        ClockMode::Real => 0,
        ClockMode::Virtual => 1,
    }
}

/// Returns the clock with this number in the header of `file`.
///
/// # Errors
/// No clock has this number.
pub(crate) fn clock_of(number: u64, file: &str) -> Result<ClockMode, OpenError> {
    match number {
        0 => Ok(ClockMode::Real),
        1 => Ok(ClockMode::Virtual),
        other => {
            let what = format!("it has clock {other}; there are 0 and 1");
            Err(OpenError::corrupt(file, CLOCK_AT as u64, what))
        }
    }
}

/// Returns a secret as two numbers of a header.
pub(crate) fn secret_numbers(secret: &[u8; 16]) -> [u64; 2] {
    [le_u64(secret, 0), le_u64(secret, 8)]
}

/// Returns the secret that two numbers of a header are.
pub(crate) fn secret_of([low, high]: [u64; 2]) -> [u8; 16] {
    let mut secret = [0; 16];
    secret[..8].copy_from_slice(&low.to_le_bytes());
    secret[8..].copy_from_slice(&high.to_le_bytes());
    secret
}

/// Returns shard `number` of `shards`, if the numbers are in range.
pub(crate) fn shard_of(number: u64, shards: u64) -> Option<ShardId> {
    ShardId::new(u32::try_from(number).ok()?, u32::try_from(shards).ok()?)
}

/// Reads the properties of the directory; `None` if the place is no data directory yet. Changes nothing.
///
/// # Errors
/// As [`find`]; [`OpenError::WrongShard`] or [`OpenError::WrongClock`] if the directory has another shard or clock than the options.
pub(crate) fn read<D: Disk>(disk: &mut D, options: &StoreOptions) -> Result<Option<Meta>, OpenError> {
    let meta = find(disk)?;
    match meta {
        Some(meta) if meta.shard != options.shard => {
            Err(OpenError::WrongShard { found: meta.shard, wanted: options.shard })
        }
        Some(meta) if meta.clock != options.clock => {
            Err(OpenError::WrongClock { found: meta.clock, wanted: options.clock })
        }
        meta => Ok(meta),
    }
}

/// Reads the properties of the directory, of either clock. `None` if the place has neither `meta` nor data of a shard.
///
/// The shard's folder is made before `meta`. So a directory with `meta` and without the folder has lost data. A directory with data and
/// without `meta` has lost data too.
pub(crate) fn find<D: Disk>(disk: &mut D) -> Result<Option<Meta>, OpenError> {
    let names = disk.list("")?;
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    if has(UNFINISHED_MARK) {
        return Err(OpenError::Unfinished);
    }
    if has(SHARDS) {
        return Err(OpenError::ManyShards);
    }
    if !has(META) {
        let has_data = has(SHARD) && disk.list(SHARD)?.iter().any(|name| kind_of(name).is_some());
        return if has_data { Err(OpenError::no_meta()) } else { Ok(None) };
    }
    let mut bytes = [0; HEADER_BYTES + 1];
    let count = disk.read(META, 0, &mut bytes)?;
    let meta = Meta::from_bytes(&bytes[..count])?;
    if has(SHARD) { Ok(Some(meta)) } else { Err(OpenError::corrupt(SHARD, 0, "the folder is missing")) }
}

/// Checks that the place is a data directory or may become one. A place that has other files, and neither `meta` nor the folder of the
/// shard, is refused: it belongs to another program, or was given by mistake.
///
/// # Errors
/// [`OpenError::Foreign`], [`OpenError::Unfinished`]; or the disk failed.
pub(crate) fn check_place<D: Disk>(disk: &mut D) -> Result<(), OpenError> {
    let names = disk.list("")?;
    if names.iter().any(|name| name == UNFINISHED_MARK) {
        return Err(OpenError::Unfinished);
    }
    let unfinished = unfinished(META);
    if names.iter().any(|name| name == META || name == SHARD) {
        return Ok(());
    }
    if names.iter().any(|name| name == SHARDS) {
        return Err(OpenError::ManyShards);
    }
    // Names that any place may have: the root of a file system has a folder `lost+found`, a home directory has files whose names begin with
    // a dot, and a process that ended early leaves its lock file and the unfinished `meta`.
    let of_root = crate::layout::unfinished(SHARDS);
    let welcome = [FsDisk::LOCK_FILE, &*unfinished, &*of_root, "lost+found"];
    let is_welcome = |name: &String| welcome.contains(&name.as_str()) || name.starts_with('.');
    match names.into_iter().find(|name| !is_welcome(name)) {
        Some(name) => Err(OpenError::Foreign { name: name.escape_debug().to_string() }),
        None => Ok(()),
    }
}

/// Makes a data directory with the clock and the secret of the options. The directory is durable when the call returns.
///
/// # Errors
/// As [`write`].
pub(crate) fn create<D: Disk>(disk: &mut D, options: &StoreOptions) -> Result<Meta, DiskError> {
    if !disk.list("")?.iter().any(|name| name == SHARD) {
        disk.create_dir(SHARD)?;
    }
    disk.sync_dir("")?;
    let StoreOptions { clock, secret, shard, .. } = *options;
    write(disk, Meta { clock, secret, has_log: false, shard })
}

/// Writes `meta`, in the place of the earlier file if there is one. The new file is durable when the call returns.
///
/// # Errors
/// If the disk failed. Then `meta` is the new file, whole, or is as before: the earlier file, or absent.
pub(crate) fn write<D: Disk>(disk: &mut D, meta: Meta) -> Result<Meta, DiskError> {
    write_whole(disk, META, &meta.to_bytes())?;
    Ok(meta)
}

/// Writes a file beside `meta`, in the place of the earlier one if there is one. The new file is durable when the call returns.
///
/// # Errors
/// As [`write`].
pub(crate) fn write_whole<D: Disk>(disk: &mut D, file: &str, bytes: &[u8]) -> Result<(), DiskError> {
    let written_as = unfinished(file);
    remove_unfinished(disk, file)?;
    disk.create(&written_as)?;
    disk.write_at(&written_as, 0, bytes)?;
    disk.sync_data(&written_as)?;
    disk.rename(&written_as, file)?;
    disk.sync_dir("")
}

/// Removes what is left of a write of `file` that did not finish. The removal is durable with the next sync of the directory.
///
/// # Errors
/// The disk failed.
pub(crate) fn remove_unfinished<D: Disk>(disk: &mut D, file: &str) -> Result<(), DiskError> {
    let left = unfinished(file);
    let (folder, wanted) = left.rsplit_once('/').unwrap_or(("", &left));
    // A link in its place is removed, and not followed.
    if disk.list(folder)?.iter().any(|name| name == wanted) {
        disk.remove(&left)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_damage_is_told() {
        let meta = Meta {
            clock: ClockMode::Virtual,
            secret: *b"0123456789abcdef",
            has_log: true,
            shard: ShardId::ONLY,
        };
        let bytes = meta.to_bytes();
        assert_eq!(Meta::from_bytes(&bytes).expect("valid"), meta);
        let newer = header(MAGIC, FORMAT + 1, SEED, [1, 0, 0, 0, 0, 0]);
        assert!(matches!(Meta::from_bytes(&newer), Err(OpenError::NewerFormat { found: 2, known: 1, .. })));
        let strange = header(MAGIC, FORMAT, SEED, [1, 2, 0, 0, 0, 0]);
        assert!(matches!(Meta::from_bytes(&strange), Err(OpenError::Corrupt { offset: 24, .. })));
        assert!(matches!(Meta::from_bytes(&bytes[..60]), Err(OpenError::Corrupt { .. })));
        let third = Meta { shard: ShardId::new(2, 4).expect("one of four"), ..meta };
        assert_eq!(Meta::from_bytes(&third.to_bytes()).expect("valid"), third);
        let beyond = header(MAGIC, FORMAT, SEED, [4, 0, 0, 0, 1, 4]);
        assert!(matches!(Meta::from_bytes(&beyond), Err(OpenError::Corrupt { offset: 16, .. })));
    }
}
