//! Names of files, and the fixed parts at their beginning.

use std::sync::Arc;

use crate::checksum::crc;

/// The file that says what the directory is.
pub(crate) const META: &str = "meta";
/// The folder of the only shard there is so far.
pub(crate) const SHARD: &str = "shard-0000";
/// The note of the newest log file, in the shard's folder.
const NEWEST: &str = "newest-log";
/// The mark of a directory that is being made: a file beside `meta`. It is removed when all of the directory is durable. No process opens a
/// directory with the mark, whatever its name is.
pub const UNFINISHED_MARK: &str = "unfinished";
/// The end of the name of an unfinished file.
pub(crate) const UNFINISHED: &str = ".tmp";

/// A log file by its number.
pub(crate) fn log_file(number: u64) -> Arc<str> {
    format!("{SHARD}/log-{number:08}").into()
}

/// A checkpoint by its number.
pub(crate) fn checkpoint_file(number: u64) -> Arc<str> {
    format!("{SHARD}/checkpoint-{number:08}").into()
}

/// A segment by its generation.
pub(crate) fn segment_file(generation: u64) -> Arc<str> {
    format!("{SHARD}/segment-{generation:08}").into()
}

/// The note of the newest log file.
pub(crate) fn newest_file() -> Arc<str> {
    format!("{SHARD}/{NEWEST}").into()
}

/// The name of the note until it is finished. Each attempt has its own name, so that a leftover which cannot be removed does not block
/// the next attempt.
pub(crate) fn newest_file_unfinished(generation: u64) -> Arc<str> {
    format!("{SHARD}/{NEWEST}-{generation:08}{UNFINISHED}").into()
}

/// The number in the name of a log file; 0 if it has none.
pub(crate) fn log_number(file: &str) -> u64 {
    match file.rsplit('/').next().and_then(kind_of) {
        Some(Kind::Log(number)) => number,
        _ => 0,
    }
}

/// The name of a file until it is finished.
pub(crate) fn unfinished(file: &str) -> Arc<str> {
    format!("{file}{UNFINISHED}").into()
}

/// The kind of a file in the shard's folder, by its name. Other names are left alone.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Log(u64),
    Checkpoint(u64),
    Segment(u64),
    Newest,
    Unfinished,
}

pub(crate) fn kind_of(name: &str) -> Option<Kind> {
    let number = |text: &str| {
        // Numbers are counted up from 1: no number of the store ever has more digits, and no next number overflows.
        let plain = (8..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        if plain { text.parse::<u64>().ok() } else { None }
    };
    if let Some(stem) = name.strip_suffix(UNFINISHED) {
        let of_newest = stem.strip_prefix(NEWEST).and_then(|rest| rest.strip_prefix('-')).and_then(number);
        return (of_newest.is_some() || kind_of(stem).is_some()).then_some(Kind::Unfinished);
    }
    if name == NEWEST {
        return Some(Kind::Newest);
    }
    if let Some(text) = name.strip_prefix("log-") {
        return number(text).map(Kind::Log);
    }
    if let Some(text) = name.strip_prefix("segment-") {
        return number(text).map(Kind::Segment);
    }
    number(name.strip_prefix("checkpoint-")?).map(Kind::Checkpoint)
}

/// The files of the store in the shard's folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The log files.
    pub(crate) logs: Vec<Arc<str>>,
    /// The numbers of the checkpoints, rising.
    pub(crate) checkpoints: Vec<u64>,
    /// The generations of the segments.
    pub(crate) segments: Vec<u64>,
    /// The files that were never finished.
    pub(crate) unfinished: Vec<Arc<str>>,
}

impl Listing {
    /// The files with these names, without those that are not the store's.
    pub(crate) fn of(names: &[String]) -> Self {
        let mut listing = Self::default();
        for name in names {
            match kind_of(name) {
                Some(Kind::Log(number)) => listing.logs.push(log_file(number)),
                Some(Kind::Checkpoint(number)) => listing.checkpoints.push(number),
                Some(Kind::Segment(generation)) => listing.segments.push(generation),
                Some(Kind::Unfinished) => listing.unfinished.push(format!("{SHARD}/{name}").into()),
                Some(Kind::Newest) | None => {}
            }
        }
        listing.checkpoints.sort_unstable();
        listing
    }
}

/// Bytes of the header of every kind of file: magic (8), format (4), CRC-32C of the rest (4), 48 bytes of its own.
///
/// The size and the order of these parts stay as they are in all later formats, so that a newer file can be told from a damaged one.
pub(crate) const HEADER_BYTES: usize = 64;

/// The part of a header that each kind of file has for itself, as six numbers.
pub(crate) type Own = [u64; 6];

/// Whether there is a number after each of these. Numbers are counted up from 1, so files that were written by a store have no others.
pub(crate) fn can_rise(numbers: &[u64]) -> bool {
    numbers.iter().all(|number| *number < u64::MAX >> 1)
}

/// The result of reading the bytes of a header.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Header {
    /// The header checks out, and has the format that is known here.
    Valid(Own),
    /// A later version wrote it.
    Newer(u32),
    /// A version before the first release wrote it, in a format that is not read any more.
    Older(u32),
    /// The header does not check out.
    Bad,
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

pub(crate) fn read_header(bytes: &[u8], magic: [u8; 8], format: u32, seed: u32) -> Header {
    let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else { return Header::Bad };
    if bytes[..8] != magic || le_u32(bytes, 12) != header_sum(seed, bytes) {
        return Header::Bad;
    }
    match le_u32(bytes, 8) {
        found if found == format => {
            let mut own = Own::default();
            for (number, chunk) in own.iter_mut().zip(bytes[16..].chunks_exact(8)) {
                *number = le_u64(chunk, 0);
            }
            Header::Valid(own)
        }
        found if found > format => Header::Newer(found),
        found => Header::Older(found),
    }
}

/// Reads a header of a kind of file whose older formats no directory has: the directory would have an older format as a whole. `Ok(None)`:
/// the header is damaged, or of an older format. `Err` has the format if a later version wrote it.
pub(crate) fn read_own(bytes: &[u8], magic: [u8; 8], format: u32, seed: u32) -> Result<Option<Own>, u32> {
    match read_header(bytes, magic, format, seed) {
        Header::Valid(own) => Ok(Some(own)),
        Header::Newer(format) => Err(format),
        Header::Older(_) | Header::Bad => Ok(None),
    }
}

fn header_sum(seed: u32, bytes: &[u8; HEADER_BYTES]) -> u32 {
    crc(crc(seed, &bytes[..12]), &bytes[16..])
}

/// Space for this many bytes of a file.
pub(crate) fn zeroes(bytes: u64) -> Vec<u8> {
    vec![0; usize::try_from(bytes).expect("a file that fits a disk fits the memory's addresses")]
}

/// The four bytes at `at` as a number. The caller has checked that they are there.
pub(crate) fn le_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The eight bytes at `at` as a number. The caller has checked that they are there.
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
    fn a_header_tells_newer_from_damaged() {
        let own = [1, 2, 3, 4, 5, u64::MAX];
        let bytes = header(*b"TESTFILE", 3, 9, own);
        assert_eq!(read_header(&bytes, *b"TESTFILE", 3, 9), Header::Valid(own));
        assert_eq!(read_header(&bytes, *b"TESTFILE", 2, 9), Header::Newer(3));
        assert_eq!(read_header(&bytes, *b"TESTFILE", 4, 9), Header::Older(3));
        assert_eq!(read_header(&bytes, *b"TESTFILE", 3, 8), Header::Bad);
        assert_eq!(read_header(&bytes, *b"OTHER   ", 3, 9), Header::Bad);
        assert_eq!(read_header(&bytes[..63], *b"TESTFILE", 3, 9), Header::Bad);
        for at in 0..HEADER_BYTES * 8 {
            let mut damaged = bytes;
            damaged[at / 8] ^= 1 << (at % 8);
            assert_eq!(read_header(&damaged, *b"TESTFILE", 3, 9), Header::Bad, "bit {at}");
        }
    }
}
