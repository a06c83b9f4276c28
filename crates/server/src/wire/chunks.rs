//! Where a chunked body ends, told without taking it apart.

use std::io;

/// `ffffffff`: bodies are limited far below, and more digits are only a way to overflow somebody's parser.
const SIZE_DIGITS_MAX: u32 = 8;

/// Follows a chunked body byte by byte. It is strict where parsers differ: no extension, no trailer, no bare LF, at most
/// eight digits. No client in use sends extensions or trailers to an API.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Chunks {
    /// In the size, after so many digits.
    Size { digits: u32, value: u64 },
    /// After the CR behind the size.
    SizeLf { value: u64 },
    /// In the data, so many bytes before its end.
    Data { left: u64 },
    /// Behind the data, before CR.
    DataCr,
    /// Behind the data, before LF.
    DataLf,
    /// Behind the last chunk, before CR.
    LastCr,
    /// Behind the last chunk, before LF.
    LastLf,
    /// The body is over.
    End,
}

impl Chunks {
    pub(crate) const START: Self = Self::Size { digits: 0, value: 0 };

    /// Follows `bytes`; gives how many belong to this body. Fewer than there are: the body is over.
    ///
    /// # Errors
    /// `InvalidData` if the first byte breaks the form. A later one that does ends what is given before it, so that what came
    /// in good order is not lost to what follows. Cost: a step per byte of framing, none per byte of data.
    pub(crate) fn follow(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < bytes.len() && *self != Self::End {
            if let Self::Data { left } = self {
                let step = (*left).min((bytes.len() - at) as u64);
                *left -= step;
                at += usize::try_from(step).expect("not above a slice's length");
                if *left == 0 {
                    *self = Self::DataCr;
                }
                continue;
            }
            match self.step(bytes[at]) {
                Ok(next) => *self = next,
                Err(_) if at > 0 => return Ok(at),
                Err(error) => return Err(error),
            }
            at += 1;
        }
        Ok(at)
    }

    fn step(self, byte: u8) -> io::Result<Self> {
        Ok(match (self, byte) {
            (Self::Size { digits, value }, _) if byte.is_ascii_hexdigit() && digits < SIZE_DIGITS_MAX => {
                let digit = (byte as char).to_digit(16).expect("a hex digit");
                Self::Size { digits: digits + 1, value: value << 4 | u64::from(digit) }
            }
            (Self::Size { digits: 1.., value }, b'\r') => Self::SizeLf { value },
            (Self::SizeLf { value: 0 }, b'\n') => Self::LastCr,
            (Self::SizeLf { value }, b'\n') => Self::Data { left: value },
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::START,
            (Self::LastCr, b'\r') => Self::LastLf,
            (Self::LastLf, b'\n') => Self::End,
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the chunks of the body are malformed",
                ));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"5\r\nhello\r\n00A\r\n0123456789\r\n0\r\n\r\n";

    #[test]
    fn a_body_ends_where_it_ends_however_it_is_cut() {
        let bytes = [BODY, b"GET"].concat();
        for cut in 0..=BODY.len() {
            let mut chunks = Chunks::START;
            assert_eq!(chunks.follow(&bytes[..cut]).expect("well formed"), cut, "cut {cut}");
            let rest = chunks.follow(&bytes[cut..]).expect("well formed");
            assert_eq!((cut + rest, chunks), (BODY.len(), Chunks::End), "cut {cut}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for bad in [
            "\r\n",
            "5\nhello",
            "g\r\n",
            "5;a=b\r\n",
            "5 \r\n",
            "-1\r\n",
            "0x5\r\n",
            "000000005\r\n",
            "5\r\nhello!!",
            "5\r\nhello\n",
            "0\r\nTrailer: x\r\n\r\n",
            "0\r\n\n",
            "5\r\r\n",
        ] {
            let mut chunks = Chunks::START;
            let good = chunks.follow(bad.as_bytes()).unwrap_or(0);
            let error = chunks.follow(&bad.as_bytes()[good..]).expect_err(bad);
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bad:?}");
        }
    }
}
