//! The file `shards`, which makes a directory the root of several shards.

use tickwheel_engine::SHARDS_MAX;

use crate::disk::{Disk, DiskError};
use crate::error::OpenError;
use crate::layout::{HEADER_BYTES, SHARDS, UNFINISHED_MARK, header, read_own};
use crate::meta::{self, clock_number, clock_of, secret_numbers, write_whole};
use crate::options::ClockMode;

const MAGIC: [u8; 8] = *b"TICKSHDS";
const FORMAT: u32 = 1;
const SEED: u32 = 0;

/// The content of the file `shards`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    pub(crate) shards: u32,
    pub(crate) clock: ClockMode,
    /// 16 random bytes, from which the identity of the data is made.
    pub(crate) secret: [u8; 16],
    /// Whether the directories of all shards were made. From then on, one that is missing is damage.
    pub(crate) is_made: bool,
}

/// Returns the secret of the root at this path, for the identity of its data; `None` if the path is not the root of several shards.
pub(crate) fn secret_of<D: Disk>(disk: &mut D) -> Result<Option<[u8; 16]>, OpenError> {
    Ok(read(disk)?.map(|content| content.secret))
}

/// Reads the file `shards`; `None` if there is none.
///
/// # Errors
/// The directory is unfinished; or the file is damaged, of a later version, or cannot be read.
pub(crate) fn read<D: Disk>(disk: &mut D) -> Result<Option<Content>, OpenError> {
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
    content_of(&bytes[..count]).map(Some)
}

/// Decodes the bytes of the file `shards`.
///
/// # Errors
/// The bytes are damaged, or a later version wrote them.
pub(crate) fn content_of(bytes: &[u8]) -> Result<Content, OpenError> {
    let own = read_own(bytes, MAGIC, FORMAT, SEED)
        .map_err(|found| OpenError::other_format(SHARDS, found, FORMAT))?
        .ok_or_else(|| OpenError::corrupt(SHARDS, 0, "its checksum does not match"))?;
    let [shards, clock, low, high, is_made, _] = own;
    let shards = u32::try_from(shards).ok().filter(|shards| (2..=SHARDS_MAX).contains(shards));
    let shards = shards.ok_or_else(|| {
        OpenError::corrupt(SHARDS, 16, format!("it has no number of shards from 2 to {SHARDS_MAX}"))
    })?;
    let clock = clock_of(clock, SHARDS)?;
    let secret = meta::secret_of([low, high]);
    Ok(Content { shards, clock, secret, is_made: is_made == 1 })
}

/// Writes the file `shards`, in the place of the earlier one if there is one. The file is durable when the call returns.
pub(crate) fn write<D: Disk>(disk: &mut D, content: Content) -> Result<(), DiskError> {
    let Content { shards, clock, secret, is_made } = content;
    let [low, high] = secret_numbers(&secret);
    let own = [shards.into(), clock_number(clock), low, high, is_made.into(), 0];
    write_whole(disk, SHARDS, &header(MAGIC, FORMAT, SEED, own))
}
