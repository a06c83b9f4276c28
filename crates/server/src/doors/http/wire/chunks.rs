//! Finds the end of a chunked body without decoding it.

use std::io;

/// The largest number of digits of a chunk's size. Bodies have a much lower limit, and more digits could only
/// overflow another parser.
const SIZE_DIGITS_MAX: usize = 8;

/// The longest line with a chunk's size and its extensions, and the longest trailer (bytes). They have no meaning
/// here. hyper limits the size of all of them together.
const LINE_BYTES_MAX: usize = 8 << 10;

/// Follows the lines and the data of a chunked body, by RFC 9112 section 7.1.
///
/// hyper decodes the body behind it. hyper itself refuses every other line end, a wrong end of a chunk, and malformed
/// trailers. Three rules are stricter than hyper's: each line ends with CR LF, also in a trailer; a size has at most
/// eight digits; and white space after a size needs an extension behind it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Chunks {
    /// At the beginning of a line with a size.
    Size,
    /// In the data of a chunk or in the line end after it, with this number of bytes left.
    Data { left: u64 },
    /// At the beginning of a line after the last chunk: a trailer, or the empty line that ends the body.
    Trailers,
    /// The body has ended.
    End,
}

impl Chunks {
    /// Whether the body has ended.
    pub(crate) fn is_over(self) -> bool {
        self == Self::End
    }

    /// Follows `bytes` and returns how many of them belong to this body. An incomplete line at their end is not
    /// counted. The caller must give it again, with more bytes behind it.
    ///
    /// # Errors
    /// `InvalidData` if the first line is malformed. If a later line is malformed, the bytes before it are returned
    /// first, so that they are not lost. The cost is one search for each line, and nothing for the bytes of data.
    pub(crate) fn follow(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        while at < bytes.len() && !self.is_over() {
            let rest = &bytes[at..];
            let (next, step) = match *self {
                Self::Data { left } if left > rest.len() as u64 => {
                    (Some(Self::Data { left: left - rest.len() as u64 }), rest.len())
                }
                Self::Data { left } => (Some(Self::Size), usize::try_from(left).expect("a part of a slice")),
                _ => match memchr::memchr(b'\n', rest) {
                    None if rest.len() < LINE_BYTES_MAX => return Ok(at),
                    Some(lf) if lf < LINE_BYTES_MAX => (self.after(&rest[..lf]), lf + 1),
                    _ => (None, 0),
                },
            };
            match next {
                Some(next) => *self = next,
                None if at > 0 => return Ok(at),
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the chunks of the body are malformed",
                    ));
                }
            }
            at += step;
        }
        Ok(at)
    }

    /// The state after a line, which is given without its LF; `None`: the line is malformed.
    fn after(self, line: &[u8]) -> Option<Self> {
        let line = line.strip_suffix(b"\r")?;
        Some(match self {
            Self::Trailers if line.is_empty() => Self::End,
            Self::Trailers => Self::Trailers,
            _ => match size(line)? {
                0 => Self::Trailers,
                size => Self::Data { left: size + 2 },
            },
        })
    }
}

/// The size in a line such as `1F4;extension`; `None`: the line is malformed.
fn size(line: &[u8]) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, rest) = line.split_at(digits);
    let is_extended = rest.trim_ascii_start().starts_with(b";");
    if digits > SIZE_DIGITS_MAX || !(rest.is_empty() || is_extended) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()
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
                let mut chunks = Chunks::Size;
                let first = chunks.follow(&bytes[..cut]).expect("well formed");
                assert!(first <= cut, "cut {cut} of {body:?}");
                let rest = chunks.follow(&bytes[first..]).expect("well formed");
                assert!(first + rest == body.len() && chunks.is_over(), "cut {cut} of {body:?}");
            }
        }
    }

    /// The number of bytes of a text before the first malformed line; `None`: none is malformed.
    fn taken(text: &str) -> Option<usize> {
        let mut chunks = Chunks::Size;
        let good = chunks.follow(text.as_bytes()).unwrap_or(0);
        let error = chunks.follow(&text.as_bytes()[good..]).err()?;
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text:?}");
        Some(good)
    }

    /// `tests/it/smuggling.rs` has the forms that hyper refuses.
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
            "-1\r\n",
            "0x5\r\n",
            "000000005\r\n",
            "0\r\n\n",
            "0\r\nA: x\n\r\n",
            "0\r\nA: x\r\n\n",
            "5\r\r\n",
        ] {
            assert!(taken(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn extensions_and_trailers_have_a_limit() {
        // A line of this kind has the given number of bytes, without its LF.
        let extended = |bytes: usize| format!("1;{}\r\nx\r\n", "e".repeat(bytes - 3));
        let trailer = |bytes: usize| format!("0\r\nX: {}\r\n\r\n", "y".repeat(bytes - 4));
        for (line, before) in [(&extended as &dyn Fn(usize) -> String, 0), (&trailer, 3)] {
            assert_eq!(taken(&line(LINE_BYTES_MAX - 1)), None);
            assert_eq!(taken(&line(LINE_BYTES_MAX)), Some(before));
            assert_eq!(
                taken(&line(LINE_BYTES_MAX + 9)[..before + LINE_BYTES_MAX]),
                Some(before),
                "without an end"
            );
        }
    }
}
