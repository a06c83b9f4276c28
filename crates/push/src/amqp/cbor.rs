//! The part of CBOR (RFC 8949) that a packed message needs: heads, texts, byte strings and small numbers.
//!
//! A packed message is one map of a known shape. A crate for CBOR would bring its data model and its derive for two functions.

/// The major types that are used.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Number = 0,
    Bytes = 2,
    Text = 3,
    Map = 5,
}

/// Appends a head: the kind and a number in the shortest form.
pub(super) fn head(to: &mut Vec<u8>, kind: Kind, number: u64) {
    let kind = (kind as u8) << 5;
    let bytes = number.to_be_bytes();
    match number {
        0..=23 => to.push(kind | bytes[7]),
        24..=0xff => to.extend([kind | 24, bytes[7]]),
        0x100..=0xffff => {
            to.push(kind | 25);
            to.extend(&bytes[6..]);
        }
        0x1_0000..=0xffff_ffff => {
            to.push(kind | 26);
            to.extend(&bytes[4..]);
        }
        _ => {
            to.push(kind | 27);
            to.extend(bytes);
        }
    }
}

/// Appends a text or a byte string.
pub(super) fn string(to: &mut Vec<u8>, kind: Kind, bytes: &[u8]) {
    head(to, kind, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Takes a head of this kind off the front, and returns its number; `None`: the bytes do not begin with one.
pub(super) fn take_head(from: &mut &[u8], kind: Kind) -> Option<u64> {
    let (first, rest) = from.split_first()?;
    if first >> 5 != kind as u8 {
        return None;
    }
    let length = match first & 31 {
        small @ 0..=23 => {
            *from = rest;
            return Some(u64::from(small));
        }
        24 => 1,
        25 => 2,
        26 => 4,
        27 => 8,
        _ => return None,
    };
    let (bytes, rest) = rest.split_at_checked(length)?;
    *from = rest;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Takes a text or a byte string off the front; `None`: the bytes do not begin with one, or it is cut off.
pub(super) fn take_string<'a>(from: &mut &'a [u8], kind: Kind) -> Option<&'a [u8]> {
    let length = usize::try_from(take_head(from, kind)?).ok()?;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_those_of_the_specification() {
        // From RFC 8949, appendix A.
        for (number, bytes) in [
            (0, vec![0x00]),
            (23, vec![0x17]),
            (24, vec![0x18, 0x18]),
            (1_000, vec![0x19, 0x03, 0xe8]),
            (1_000_000, vec![0x1a, 0x00, 0x0f, 0x42, 0x40]),
            (1_000_000_000_000, vec![0x1b, 0x00, 0x00, 0x00, 0xe8, 0xd4, 0xa5, 0x10, 0x00]),
        ] {
            let mut written = Vec::new();
            head(&mut written, Kind::Number, number);
            assert_eq!(written, bytes, "{number}");
            assert_eq!(take_head(&mut &written[..], Kind::Number), Some(number));
        }
        let mut written = Vec::new();
        string(&mut written, Kind::Text, "ü".as_bytes());
        assert_eq!(written, [0x62, 0xc3, 0xbc]);
        assert_eq!(take_string(&mut &written[..], Kind::Text), Some("ü".as_bytes()));
        assert_eq!(take_string(&mut &written[..], Kind::Bytes), None);
        assert_eq!(take_string(&mut &written[..2], Kind::Text), None);
    }
}
