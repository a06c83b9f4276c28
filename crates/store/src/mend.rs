//! Finds the one damaged byte of 64 bytes under one checksum, by trying each change of one byte.

use crate::layout::HEADER_BYTES;

/// The value that `read` takes from 64 bytes, either unchanged or with one byte changed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mended<T> {
    pub(crate) value: T,
    /// The offset of the damaged byte: the bytes check out if this byte is changed, and with no other change of one byte. `None`: the bytes
    /// check out unchanged.
    pub(crate) at: Option<u64>,
}

/// Reads 64 bytes under one CRC-32C. If they do not check out, each of the 16,320 ways to change one byte is tried; `None` unless exactly
/// one of them checks out. Bytes with more damage pass by chance once in 260,000 times. Even then `read` must accept the value.
pub(crate) fn read_mended<T>(
    bytes: &[u8],
    read: impl Fn(&[u8; HEADER_BYTES]) -> Option<T>,
) -> Option<Mended<T>> {
    let bytes = bytes.first_chunk::<HEADER_BYTES>()?;
    if let Some(value) = read(bytes) {
        return Some(Mended { value, at: None });
    }
    let mut found = None;
    let mut tried = *bytes;
    for at in 0..HEADER_BYTES {
        for change in 1..=255 {
            tried[at] = bytes[at] ^ change;
            if let Some(value) = read(&tried) {
                if found.is_some() {
                    return None;
                }
                found = Some(Mended { value, at: Some(at as u64) });
            }
        }
        tried[at] = bytes[at];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::Seeds;
    use crate::log::{LogHeader, read_log_header};
    use crate::meta::Meta;
    use crate::options::ClockMode;
    use tickwheel_engine::ShardId;

    #[test]
    fn every_single_damaged_byte_of_a_header_is_found() {
        let seeds = Seeds::new([4; 16]);
        let header = LogHeader { generation: 7, len: 16_384, fresh: true, before: None };
        let whole = header.to_bytes(&seeds);
        let read = |bytes: &[u8; HEADER_BYTES]| read_log_header(bytes, &seeds).ok().flatten();
        assert_eq!(read_mended(&whole, read), Some(Mended { value: header, at: None }));
        for at in 0..HEADER_BYTES {
            let mut damaged = whole;
            damaged[at] ^= 1 << (at % 8) | 0x81;
            assert_eq!(
                read_mended(&damaged, read),
                Some(Mended { value: header, at: Some(at as u64) }),
                "byte {at}"
            );
        }
        let mut two = whole;
        (two[20], two[40]) = (two[20] ^ 3, two[40] ^ 5);
        assert_eq!(read_mended(&two, read), None);
        assert_eq!(read_mended(&whole[..63], read), None);
    }

    #[test]
    fn the_secret_is_read_though_a_byte_of_it_is_damaged() {
        let meta = Meta {
            clock: ClockMode::Virtual,
            secret: *b"0123456789abcdef",
            has_log: true,
            shard: ShardId::ONLY,
        };
        let whole = meta.to_bytes();
        for at in 0..HEADER_BYTES {
            let mut damaged = whole;
            damaged[at] = damaged[at].wrapping_add(77);
            let mended = read_mended(&damaged, |bytes| Meta::from_bytes(bytes).ok());
            assert_eq!(mended, Some(Mended { value: meta, at: Some(at as u64) }), "byte {at}");
        }
    }
}
