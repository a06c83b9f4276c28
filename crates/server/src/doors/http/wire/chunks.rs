//! Finds the end of a chunked body without decoding it.

use std::io;

use super::head::is_token_byte;

/// The largest number of digits of a chunk's size. Bodies have a much lower limit, and more digits could only
/// overflow another parser.
const SIZE_DIGITS_MAX: u32 = 8;

/// The largest size of the extensions of all chunks of a body, and of its trailers (bytes each). They have no meaning
/// here.
const IGNORED_BYTES_MAX: u32 = 8 << 10;

/// Follows a chunked body byte by byte, by RFC 9112 section 7.1. Extensions and trailers are skipped; their bytes are
/// limited. The parser is strict in points where others differ: no bare LF, no control character, no folded trailer,
/// at most eight digits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Chunks {
    at: At,
    /// The bytes of extensions, and later of trailers, that may still come.
    ignored_left: u32,
}

/// The position in a chunked body.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum At {
    /// In the size, after this number of digits.
    Size { digits: u32, value: u64 },
    /// In white space after the size; an extension must follow.
    SizeSpace { value: u64 },
    /// In the extensions, after the first semicolon.
    Extension { value: u64 },
    /// After the CR that follows the size and its extensions.
    SizeLf { value: u64 },
    /// In the data, with this number of bytes left.
    Data { left: u64 },
    /// After the data, before CR.
    DataCr,
    /// After the data, before LF.
    DataLf,
    /// At the beginning of a line after the last chunk: a trailer, or the empty line that ends the body.
    Line,
    /// In the name of a trailer.
    TrailerName,
    /// In the value of a trailer.
    TrailerValue,
    /// After a trailer, before LF.
    TrailerLf,
    /// In the empty line at the end, before LF.
    LastLf,
    /// The body has ended.
    End,
}

impl Chunks {
    pub(crate) const START: Self = Self { at: At::SIZE, ignored_left: IGNORED_BYTES_MAX };

    /// Whether the body has ended.
    pub(crate) fn is_over(self) -> bool {
        self.at == At::End
    }

    /// Follows `bytes` and returns how many of them belong to this body. If there are more bytes, the body has ended.
    ///
    /// # Errors
    /// `InvalidData` if the first byte is malformed. If a later byte is malformed, the bytes before it are returned
    /// first, so that they are not lost. Cost: a step for each byte of framing, none for a byte of data.
    pub(crate) fn follow(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < bytes.len() && !self.is_over() {
            if let At::Data { left } = &mut self.at {
                let step = (*left).min((bytes.len() - at) as u64);
                *left -= step;
                at += usize::try_from(step).expect("not above a slice's length");
                if *left == 0 {
                    self.at = At::DataCr;
                }
                continue;
            }
            match self.step(bytes[at]) {
                Some(next) => *self = next,
                None if at > 0 => return Ok(at),
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the chunks of the body are malformed",
                    ));
                }
            }
            at += 1;
        }
        Ok(at)
    }

    /// The state after one more byte; `None`: the byte is malformed.
    fn step(self, byte: u8) -> Option<Self> {
        let at = self.at.step(byte)?;
        let ignored_left = match (self.at, at) {
            (
                _,
                At::SizeSpace { .. }
                | At::Extension { .. }
                | At::TrailerName
                | At::TrailerValue
                | At::TrailerLf,
            ) => self.ignored_left.checked_sub(1)?,
            // Trailers have a limit of their own.
            (At::SizeLf { value: 0 }, _) => IGNORED_BYTES_MAX,
            _ => self.ignored_left,
        };
        Some(Self { at, ignored_left })
    }
}

impl At {
    const SIZE: Self = Self::Size { digits: 0, value: 0 };

    fn step(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Size { digits, value }, _) if byte.is_ascii_hexdigit() && digits < SIZE_DIGITS_MAX => {
                let digit = (byte as char).to_digit(16).expect("a hex digit");
                Self::Size { digits: digits + 1, value: value << 4 | u64::from(digit) }
            }
            (Self::Size { digits: 1.., value } | Self::SizeSpace { value }, b' ' | b'\t') => {
                Self::SizeSpace { value }
            }
            (Self::Size { digits: 1.., value } | Self::SizeSpace { value }, b';') => {
                Self::Extension { value }
            }
            (Self::Size { digits: 1.., value } | Self::Extension { value }, b'\r') => Self::SizeLf { value },
            (Self::Extension { value }, _) if is_text(byte) => Self::Extension { value },
            (Self::SizeLf { value: 0 }, b'\n') => Self::Line,
            (Self::SizeLf { value }, b'\n') => Self::Data { left: value },
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::SIZE,
            (Self::Line, b'\r') => Self::LastLf,
            (Self::LastLf, b'\n') => Self::End,
            (Self::Line | Self::TrailerName, _) if is_token_byte(byte) => Self::TrailerName,
            (Self::TrailerName, b':') => Self::TrailerValue,
            (Self::TrailerValue, b'\r') => Self::TrailerLf,
            (Self::TrailerValue, _) if is_text(byte) => Self::TrailerValue,
            (Self::TrailerLf, b'\n') => Self::Line,
            _ => return None,
        })
    }
}

/// Whether a byte may be in an extension or in the value of a trailer: no control character, and only ASCII, as in a
/// head.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || byte == b' ' || byte.is_ascii_graphic()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODIES: [&str; 3] = [
        "5\r\nhello\r\n00A\r\n0123456789\r\n0\r\n\r\n",
        "5;a\r\nhello\r\nA \t; a=\"b;c\" ; d\r\n0123456789\r\n0;last\r\n\r\n",
        "0\r\nExpires: now\r\nContent-Length: 7\r\nX:\r\n\r\n",
    ];

    #[test]
    fn the_end_of_a_body_does_not_depend_on_its_pieces() {
        for body in BODIES {
            let bytes = [body.as_bytes(), b"GET"].concat();
            for cut in 0..=body.len() {
                let mut chunks = Chunks::START;
                assert_eq!(chunks.follow(&bytes[..cut]).expect("well formed"), cut, "cut {cut} of {body:?}");
                let rest = chunks.follow(&bytes[cut..]).expect("well formed");
                assert!(cut + rest == body.len() && chunks.is_over(), "cut {cut} of {body:?}");
            }
        }
    }

    /// The number of bytes of a text before the first malformed one; `None`: none is malformed.
    fn taken(text: &str) -> Option<usize> {
        let mut chunks = Chunks::START;
        let good = chunks.follow(text.as_bytes()).unwrap_or(0);
        let error = chunks.follow(&text.as_bytes()[good..]).err()?;
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text:?}");
        Some(good)
    }

    #[test]
    fn other_forms_are_refused() {
        for bad in [
            "\r\n",
            "5\nhello",
            "g\r\n",
            ";a\r\n",
            "5 \r\n",
            "5 a\r\n",
            "5;a\nhello",
            "5;a\rb",
            "5;a\u{0}\r\n",
            "5;\u{fc}\r\n",
            "-1\r\n",
            "0x5\r\n",
            "000000005\r\n",
            "5\r\nhello!!",
            "5\r\nhello\n",
            "0\r\n\n",
            "0\r\nTrailer\r\n\r\n",
            "0\r\nTrailer : x\r\n\r\n",
            "0\r\n: x\r\n\r\n",
            "0\r\nA: x\n\r\n",
            "0\r\nA: x\r\n folded\r\n\r\n",
            "0\r\nA: x\u{0}\r\n\r\n",
            "0\r\nA: x\ry\r\n",
            "0\r\nA: x\r\n\n",
            "5\r\r\n",
        ] {
            assert!(taken(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn extensions_and_trailers_have_a_limit() {
        let max = IGNORED_BYTES_MAX as usize;
        let extended = |bytes: usize| format!("1;{}\r\nx\r\n", "e".repeat(bytes - 1));
        assert_eq!(taken(&extended(max)), None);
        assert_eq!(taken(&extended(max + 1)), Some(1 + max));
        assert_eq!(taken(&extended(max / 2).repeat(2)), None);
        assert!(taken(&extended(max / 2 + 1).repeat(2)).is_some(), "all chunks have it together");
        // The trailer has `bytes` bytes, with its CR.
        let trailers = |bytes: usize| format!("{}0\r\nX: {}\r\n\r\n", extended(max), "y".repeat(bytes - 4));
        assert_eq!(taken(&trailers(max)), None);
        assert!(taken(&trailers(max + 1)).is_some());
    }
}
