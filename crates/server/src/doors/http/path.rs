//! The names in a path, percent-decoded strictly.
//!
//! The raw path was matched already, so `%2F` in a key is part of the key and never a separator.

use tickwheel_api::Problem;

/// The problem of a name that cannot be decoded.
pub(crate) fn undecodable(fault: DecodeFault, what: &str) -> Problem {
    Problem::bad_name(fault.text(what), fault.hint())
}

/// Why a segment cannot be decoded, with the byte offset.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum DecodeFault {
    /// A `%` at this byte of the raw text, without two hex digits.
    Percent(usize),
    /// The decoded text is not UTF-8 from this byte on.
    Utf8(usize),
}

impl DecodeFault {
    fn text(self, what: &str) -> String {
        match self {
            Self::Percent(at) => {
                format!("the {what} has a `%` at byte {at} without two hex digits behind it")
            }
            Self::Utf8(at) => {
                format!("the {what} is not UTF-8 from byte {at} on, once it is percent-decoded")
            }
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Self::Percent(_) => "write a `%` of the name itself as `%25`",
            Self::Utf8(_) => "encode the name as UTF-8, then each byte as `%XX`",
        }
    }
}

pub(crate) fn decode(raw: &str) -> Result<String, DecodeFault> {
    let bytes = raw.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            out.push(byte);
            at += 1;
            continue;
        }
        let digit = |offset: usize| bytes.get(at + offset).and_then(|&b| (b as char).to_digit(16));
        let (Some(high), Some(low)) = (digit(1), digit(2)) else { return Err(DecodeFault::Percent(at)) };
        out.push(u8::try_from(high << 4 | low).expect("two hex digits make a byte"));
        at += 3;
    }
    String::from_utf8(out).map_err(|error| DecodeFault::Utf8(error.utf8_error().valid_up_to()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_is_strict() {
        assert_eq!(decode("order:1"), Ok("order:1".to_owned()));
        assert_eq!(decode("a%2Fb%2fc%25%3F%23+%20"), Ok("a/b/c%?#+ ".to_owned()));
        assert_eq!(decode("%C3%BC"), Ok("ü".to_owned()));
        assert_eq!(decode(""), Ok(String::new()));
        for (raw, fault) in [
            ("ab%", DecodeFault::Percent(2)),
            ("ab%4", DecodeFault::Percent(2)),
            ("%zz", DecodeFault::Percent(0)),
            ("%+1", DecodeFault::Percent(0)),
            ("a%C3", DecodeFault::Utf8(1)),
            ("%ff", DecodeFault::Utf8(0)),
            ("%C0%AF", DecodeFault::Utf8(0)),
        ] {
            assert_eq!(decode(raw), Err(fault), "{raw:?}");
        }
    }
}
