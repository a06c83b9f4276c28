//! The encoding of numbers, instants and byte strings.

use tickwheel_engine::Timestamp;

/// The error of decoding bytes: the bytes are damaged, never were a record, or are of a later format.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} at byte {at} of the record")]
pub(crate) struct DecodeError {
    /// The reason, in words.
    pub(crate) what: &'static str,
    /// The offset at which the decoding failed, from the start of the decoded bytes (bytes).
    pub(crate) at: usize,
}

/// Appends a number as 1 to 10 bytes. Each byte has seven bits of the number, the lowest bits first. The high bit of a byte says that more
/// bytes follow.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends the number of bytes, then the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends the number of bytes of a text, then its UTF-8 bytes.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// Appends the tag and the member of a record. Appends nothing if the member is `None`.
pub(super) fn put_member<M>(
    out: &mut Vec<u8>,
    tag: u8,
    member: Option<M>,
    put: impl FnOnce(&mut Vec<u8>, M),
) {
    if let Some(member) = member {
        out.push(tag);
        put(out, member);
    }
}

/// Reads values out of bytes, from front to back. For any bytes, a call returns a value or a [`DecodeError`], and never panics. The reader
/// itself allocates no memory.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn error(&self, what: &'static str) -> DecodeError {
        DecodeError { what, at: self.at }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..count)) {
            Some(taken) => {
                self.at += count;
                Ok(taken)
            }
            None => Err(self.error("more bytes announced than there are")),
        }
    }

    /// Takes all bytes that are left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        self.take(1).map(|byte| byte[0])
    }

    pub(crate) fn u32_le(&mut self) -> Result<u32, DecodeError> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.error("a number beyond 64 bits"))
    }

    /// Reads the tag of the next member of a record; `None` at the end of the record. `last` keeps the tag of the member before. Tags have
    /// to rise; only the tags in `lists` may repeat. So the members of a record have only one possible order.
    pub(super) fn tag(&mut self, last: &mut u8, lists: &[u8]) -> Result<Option<u8>, DecodeError> {
        if self.is_empty() {
            return Ok(None);
        }
        let tag = self.u8()?;
        if tag < *last || (tag == *last && !lists.contains(&tag)) {
            return Err(self.error("members out of order"));
        }
        *last = tag;
        Ok(Some(tag))
    }

    /// Reads a number. Fails if the number does not fit the type `N`.
    pub(crate) fn number<N: TryFrom<u64>>(&mut self) -> Result<N, DecodeError> {
        let number = self.varint()?;
        N::try_from(number).map_err(|_| self.error("a number out of its range"))
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let count = self.number::<usize>()?;
        self.take(count)
    }

    pub(crate) fn str(&mut self) -> Result<&'a str, DecodeError> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.error("a text that is no UTF-8"))
    }
}

pub(super) fn put_timestamp(out: &mut Vec<u8>, at: Timestamp) {
    // `as_tick` returns the milliseconds unchanged, because a timestamp is never negative.
    put_varint(out, at.as_tick());
}

/// Reads an instant.
pub(crate) fn timestamp(reader: &mut Reader<'_>) -> Result<Timestamp, DecodeError> {
    let ms = reader.number::<i64>()?;
    Timestamp::from_ms(ms).ok_or_else(|| reader.error("an instant before 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_too_long_ones_are_refused() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            assert_eq!(Reader::new(&bytes).varint(), Ok(number));
            bytes.pop();
            assert!(Reader::new(&bytes).varint().is_err(), "{number} was read from too few bytes");
        }
        assert!(Reader::new(&[0xff; 10]).varint().is_err(), "70 bits were taken for a number");
        let beyond = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        assert!(Reader::new(&beyond).varint().is_err(), "65 bits were taken for a number");
        assert!(Reader::new(&[0x80; 12]).varint().is_err(), "an endless number was taken");
    }

    #[test]
    fn a_length_beyond_the_end_is_refused() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, u64::MAX);
        assert!(Reader::new(&bytes).bytes().is_err(), "u64::MAX bytes were taken");
        assert_eq!(
            Reader::new(&[2, b'a']).bytes(),
            Err(DecodeError { what: "more bytes announced than there are", at: 1 })
        );
        assert!(Reader::new(&[1, 0xff]).str().is_err(), "0xff was taken for a text");
    }
}
