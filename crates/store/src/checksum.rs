//! Checksums that start at a number that is made from the directory's secret. Bytes that were not written as records of the directory match
//! a checksum only by chance.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Gives the numbers at which the CRCs of records start. Such a number is a keyed hash of the kind of the file and, for most kinds, of its
/// generation or number.
///
/// A record is valid only in the kind of file and in the generation for which it was written. So old bytes in a recycled file are no
/// records in the file's next generation. The payload of a client cannot look like a record either, because the key is the secret of the
/// directory.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Seeds {
    key: [u8; 16],
}

/// The kind of file or record that a seed is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// The headers of log files.
    LogHeader,
    /// The frames of a log file in this generation.
    Frames(u64),
    /// A checkpoint with this number.
    Checkpoint(u64),
    /// A segment of this generation.
    Segment(u64),
    /// The note that says which log file is the newest.
    Newest,
}

impl Seeds {
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        Self { key: secret }
    }

    pub(crate) fn of(&self, what: Use) -> u32 {
        let (kind, number) = match what {
            Use::LogHeader => (1, 0),
            Use::Frames(generation) => (2, generation),
            Use::Checkpoint(number) => (3, number),
            Use::Segment(generation) => (4, generation),
            Use::Newest => (5, 0),
        };
        let mut hasher = SipHasher13::new_with_key(&self.key);
        // The prefix makes seeds differ from the other hashes that use the same secret.
        hasher.write(b"tickwheel store ");
        hasher.write(&u64::to_le_bytes(kind));
        hasher.write(&u64::to_le_bytes(number));
        hasher.finish() as u32
    }
}

/// Returns the CRC-32C of `bytes`, started at `seed`.
pub(crate) fn crc(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, bytes)
}
