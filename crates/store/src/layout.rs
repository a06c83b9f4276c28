//! The names of the store's files, and the header at the beginning of each file with data.

use std::sync::Arc;

use tickwheel_engine::ShardId;

use crate::checksum::crc;

/// The file with the properties of the data directory: the clock, the secret and the format.
pub(crate) const META: &str = "meta";
/// The file with the wall clock that was believed last, beside `meta`.
pub(crate) const CLOCK: &str = "clock";
/// The file that makes a directory the root of several shards, each of which has a directory of its own below the root.
pub(crate) const SHARDS: &str = "shards";
/// The file by which a start notices that the folder of a shard was replaced, in the data directory and in the folder of each shard.
pub(crate) const STAMP: &str = "stamp";
/// Returns the name of the folder of a shard below a root.
pub(crate) fn folder_of(shard: ShardId) -> String {
    format!("{:04}", shard.number())
}

/// Whether this name may be that of a shard's folder below a root.
pub(crate) fn is_folder_name(name: &str) -> bool {
    name.len() == 4 && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// The folder with the tasks.
pub(crate) const SHARD: &str = "shard-0000";
/// The name of the note of the newest log file, in the shard's folder.
const NEWEST: &str = "newest-log";
/// The name of a file as long as the note, which is there for an opening on a disk without space.
const SPARE_NOTE: &str = "spare-note";
/// The mark of a directory that a salvage, a restore or a backup is making: a file beside `meta`. The mark is removed when all of the
/// directory is durable. Until then, only the process that makes the directory may open a store in it.
pub const UNFINISHED_MARK: &str = "unfinished";
/// The last part of the name of an unfinished file.
pub(crate) const UNFINISHED: &str = ".tmp";

/// Returns the name of the log file with this number.
pub(crate) fn log_file(number: u64) -> Arc<str> {
    format!("{SHARD}/log-{number:08}").into()
}

/// Returns the name of the checkpoint with this number.
pub(crate) fn checkpoint_file(number: u64) -> Arc<str> {
    format!("{SHARD}/checkpoint-{number:08}").into()
}

/// Returns the name of the segment with this generation.
pub(crate) fn segment_file(generation: u64) -> Arc<str> {
    format!("{SHARD}/segment-{generation:08}").into()
}

/// Returns the name of the note of the newest log file.
pub(crate) fn newest_file() -> Arc<str> {
    format!("{SHARD}/{NEWEST}").into()
}

/// Returns the name of the file whose space the note takes if an opening finds no other.
pub(crate) fn spare_note() -> Arc<str> {
    format!("{SHARD}/{SPARE_NOTE}").into()
}

/// Returns the name that the note has until it is finished. The name has the generation of the noted file, so that a leftover that cannot
/// be removed does not block the note of another file.
pub(crate) fn newest_file_unfinished(generation: u64) -> Arc<str> {
    format!("{SHARD}/{NEWEST}-{generation:08}{UNFINISHED}").into()
}

/// Returns the number in the name of a log file; 0 if `file` is not the name of a log file.
pub(crate) fn log_number(file: &str) -> u64 {
    match file.rsplit('/').next().and_then(kind_of) {
        Some(Kind::Log(number)) => number,
        _ => 0,
    }
}

/// Returns the name that a file has until it is finished.
pub(crate) fn unfinished(file: &str) -> Arc<str> {
    format!("{file}{UNFINISHED}").into()
}

/// The kind of a file in the shard's folder, by the name of the file. Files with other names are not the store's, and are left alone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Log(u64),
    Checkpoint(u64),
    Segment(u64),
    Newest,
    Stamp,
    Unfinished,
}

pub(crate) fn kind_of(name: &str) -> Option<Kind> {
    let number = |text: &str| {
        // The store counts numbers up from 1, so its numbers have at most 18 digits. A number of at most 18 digits has a next number that
        // fits.
        let plain = (8..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if plain { text.parse::<u64>().ok() } else { None }
    };
    if let Some(stem) = name.strip_suffix(UNFINISHED) {
        let of_newest = stem.strip_prefix(NEWEST).and_then(|rest| rest.strip_prefix('-')).and_then(number);
        return (of_newest.is_some() || kind_of(stem).is_some()).then_some(Kind::Unfinished);
    }
    if name == NEWEST || name == SPARE_NOTE {
        return Some(Kind::Newest);
    }
    if name == STAMP {
        return Some(Kind::Stamp);
    }
    if let Some(text) = name.strip_prefix("log-") {
        return number(text).map(Kind::Log);
    }
    if let Some(text) = name.strip_prefix("segment-") {
        return number(text).map(Kind::Segment);
    }
    number(name.strip_prefix("checkpoint-")?).map(Kind::Checkpoint)
}

/// The files of the store in the shard's folder. The note of the newest log file and the stamp are left out.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The names of the log files.
    pub(crate) logs: Vec<Arc<str>>,
    /// The numbers of the checkpoints, in rising order.
    pub(crate) checkpoints: Vec<u64>,
    /// The generations of the segments.
    pub(crate) segments: Vec<u64>,
    /// The names of the unfinished files.
    pub(crate) unfinished: Vec<Arc<str>>,
}

impl Listing {
    /// Returns the files with these names, by kind. Leaves out the files that are not the store's, the note of the newest log file and the stamp.
    pub(crate) fn of(names: &[String]) -> Self {
        let mut listing = Self::default();
        for name in names {
            match kind_of(name) {
                Some(Kind::Log(number)) => listing.logs.push(log_file(number)),
                Some(Kind::Checkpoint(number)) => listing.checkpoints.push(number),
                Some(Kind::Segment(generation)) => listing.segments.push(generation),
                Some(Kind::Unfinished) => listing.unfinished.push(format!("{SHARD}/{name}").into()),
                Some(Kind::Newest | Kind::Stamp) | None => {}
            }
        }
        listing.checkpoints.sort_unstable();
        listing
    }
}

/// The length (bytes) of the header of every kind of file: magic (8), format (4), CRC-32C of the other 60 bytes (4), numbers of the kind
/// (48).
///
/// The size and the order of these parts stay the same in all later formats. So a reader can tell a newer file from a damaged one.
pub(crate) const HEADER_BYTES: usize = 64;

/// The last part of a header: six numbers with a meaning of their own in each kind of file.
pub(crate) type Own = [u64; 6];

/// Whether each of these numbers can be counted up. The store counts numbers up from 1, so it never writes a number that cannot.
pub(crate) fn can_rise(numbers: &[u64]) -> bool {
    numbers.iter().all(|number| *number < u64::MAX >> 1)
}

pub(crate) fn header(magic: [u8; 8], format: u32, seed: u32, own: Own) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&magic);
    bytes[8..12].copy_from_slice(&format.to_le_bytes());
    for (chunk, number) in bytes[16..].chunks_exact_mut(8).zip(own) {
        chunk.copy_from_slice(&number.to_le_bytes());
    }
    let sum = header_sum(seed, &bytes);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Reads the header of a file. `Ok(None)`: the header is damaged, or is of another kind of file. `Err` has the format if it is not `format`:
/// another version wrote the header.
pub(crate) fn read_own(bytes: &[u8], magic: [u8; 8], format: u32, seed: u32) -> Result<Option<Own>, u32> {
    let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    if bytes[..8] != magic || le_u32(bytes, 12) != header_sum(seed, bytes) {
        return Ok(None);
    }
    let found = le_u32(bytes, 8);
    if found != format {
        return Err(found);
    }
    let mut own = Own::default();
    for (number, chunk) in own.iter_mut().zip(bytes[16..].chunks_exact(8)) {
        *number = le_u64(chunk, 0);
    }
    Ok(Some(own))
}

fn header_sum(seed: u32, bytes: &[u8; HEADER_BYTES]) -> u32 {
    crc(crc(seed, &bytes[..12]), &bytes[16..])
}

/// Returns this many zero bytes, as space for the bytes of a file.
pub(crate) fn zeroes(bytes: u64) -> Vec<u8> {
    vec![0; usize::try_from(bytes).expect("a file that fits a disk fits the memory's addresses")]
}

/// Returns the four bytes at `at` as a number. The caller has checked that these bytes exist.
pub(crate) fn le_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Returns the eight bytes at `at` as a number. The caller has checked that these bytes exist.
pub(crate) fn le_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_by_their_form() {
        assert_eq!(kind_of("log-00000007"), Some(Kind::Log(7)));
        assert_eq!(kind_of("log-123456789"), Some(Kind::Log(123_456_789)));
        assert_eq!(kind_of("checkpoint-00000001"), Some(Kind::Checkpoint(1)));
        assert_eq!(kind_of("segment-00000012"), Some(Kind::Segment(12)));
        assert_eq!(kind_of("checkpoint-00000001.tmp"), Some(Kind::Unfinished));
        assert_eq!(kind_of("newest-log"), Some(Kind::Newest));
        assert_eq!((kind_of("stamp"), kind_of("stamp.tmp")), (Some(Kind::Stamp), Some(Kind::Unfinished)));
        assert_eq!(spare_note().strip_prefix("shard-0000/").and_then(kind_of), Some(Kind::Newest));
        assert_eq!(
            newest_file_unfinished(12).strip_prefix("shard-0000/").and_then(kind_of),
            Some(Kind::Unfinished)
        );
        assert_eq!((log_number(&log_file(7)), log_number("shard-0000/notes")), (7, 0));
        for other in [
            "newest-log-00000012",
            "log-7",
            "log-+0000007",
            "log-9999999999999999999",
            "log-00000007~",
            "notes.tmp",
            "lost+found",
            "",
        ] {
            assert_eq!(kind_of(other), None, "{other} was taken for ours");
        }
    }

    #[test]
    fn a_header_tells_another_format_from_damage() {
        let own = [1, 2, 3, 4, 5, u64::MAX];
        let bytes = header(*b"TESTFILE", 3, 9, own);
        assert_eq!(read_own(&bytes, *b"TESTFILE", 3, 9), Ok(Some(own)));
        assert_eq!(read_own(&bytes, *b"TESTFILE", 2, 9), Err(3));
        assert_eq!(read_own(&bytes, *b"TESTFILE", 4, 9), Err(3));
        assert_eq!(read_own(&bytes, *b"TESTFILE", 3, 8), Ok(None));
        assert_eq!(read_own(&bytes, *b"OTHER   ", 3, 9), Ok(None));
        assert_eq!(read_own(&bytes[..63], *b"TESTFILE", 3, 9), Ok(None));
        for at in 0..HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[at / 8] ^= 1 << (at % 8);
            assert_eq!(read_own(&damaged, *b"TESTFILE", 3, 9), Ok(None), "bit {at}");
        }
    }
}
