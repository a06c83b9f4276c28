//! Checksums that only this directory could have made.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Where the CRC of a file's records starts: a keyed hash of the kind of the file and of the use that it is in.
///
/// A record checks out only in the file and the use that it was written for. So bytes of an earlier use in a recycled file are no record in
/// the next use. No payload of a client can look like a record either, because the key is the secret of the directory.
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
    /// The note of the newest log file.
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
        // The prefix keeps seeds apart from the hashes that the same secret keys elsewhere.
        hasher.write(b"tickwheel store ");
        hasher.write(&u64::to_le_bytes(kind));
        hasher.write(&u64::to_le_bytes(number));
        hasher.finish() as u32
    }
}

/// The CRC-32C of `bytes`, started at `seed`.
pub(crate) fn crc(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, bytes)
}
