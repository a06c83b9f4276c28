//! [`Host`]: the host of a URL. An address has many literal forms, and each of them is read here as the address that it is.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// The longest name of a host (bytes), as in RFC 1035.
const NAME_BYTES_MAX: usize = 253;
/// The longest part of a name between two dots (bytes).
const LABEL_BYTES_MAX: usize = 63;

/// The host of a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// A name, in lower case, without a dot at its end.
    Name(String),
    /// A literal address.
    Address(IpAddr),
}

/// Why a text is no host.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostError {
    /// The text is empty.
    #[error("the host is missing")]
    Missing,
    /// The text has a character that no name has.
    #[error(
        "{0:?} is not allowed in the name of a host; write a name with other letters in its form with `xn--`"
    )]
    Character(char),
    /// A part of the name is empty or too long, or the name is too long.
    #[error(
        "the name of a host has parts of 1 to {LABEL_BYTES_MAX} characters between its dots, and at most {NAME_BYTES_MAX} in all"
    )]
    Length,
    /// The text ends in a number, but it is no address.
    #[error("the host ends in a number, but it is no IPv4 address")]
    Number,
    /// The text in brackets is no IPv6 address.
    #[error("the text in brackets is no IPv6 address")]
    Brackets,
}

impl Host {
    /// Reads the host of a URL, without a port: a name, an IPv4 address or an IPv6 address in brackets.
    ///
    /// An IPv4 address may have all forms that a resolver takes: `127.0.0.1`, `127.1`, `0x7f.1`, `0177.0.0.1`, `2130706433`. So a name that
    /// ends in a number is an address or an error, as in the URL standard of the WHATWG.
    ///
    /// # Errors
    /// [`HostError`].
    ///
    /// ```
    /// use tickwheel_push::guard::Host;
    /// assert_eq!(Host::parse("0x7f.1")?.to_string(), "127.0.0.1");
    /// assert_eq!(Host::parse("API.Shop.Example.")?.to_string(), "api.shop.example");
    /// assert_eq!(Host::parse("[::1]")?.to_string(), "[::1]");
    /// # Ok::<(), tickwheel_push::guard::HostError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::Brackets)?;
            return inner
                .parse()
                .map(|address| Self::Address(IpAddr::V6(address)))
                .map_err(|_| HostError::Brackets);
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() {
            return Err(HostError::Missing);
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if let Some(other) = name.chars().find(|&c| !is_allowed(c)) {
            return Err(HostError::Character(other));
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        if number(last).is_some() || last.bytes().all(|byte| byte.is_ascii_digit()) && !last.is_empty() {
            return address(&name).map(|address| Self::Address(IpAddr::V4(address))).ok_or(HostError::Number);
        }
        let is_label = |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len());
        if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
            return Err(HostError::Length);
        }
        Ok(Self::Name(name))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Reads an IPv4 address of one to four numbers. The last number fills the bytes that are left.
fn address(text: &str) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = text.split('.').collect();
    let (last, first) = parts.split_last()?;
    if first.len() > 3 {
        return None;
    }
    let mut bits = 0;
    for part in first {
        let byte = number(part).filter(|&number| number <= 0xff)?;
        bits = bits << 8 | byte;
    }
    let left = 8 * (4 - first.len()) as u32;
    let last = number(last).filter(|&number| number < 1 << left)?;
    u32::try_from(bits << left | last).ok().map(Ipv4Addr::from_bits)
}

/// Reads a number of the C language: decimal, octal behind `0`, or hexadecimal behind `0x`.
fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [] => return None,
        [b'0', b'x', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    match digits {
        "" => Some(0),
        // A number that does not fit is larger than any address.
        _ if digits.chars().all(|c| c.is_digit(radix)) => {
            Some(u64::from_str_radix(digits, radix).unwrap_or(u64::MAX))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_literal_form_of_loopback_is_read_as_loopback() {
        let loopback = [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "0x7f.1",
            "0x7F.0.0.1",
            "0x7f000001",
            "0X7F000001",
            "2130706433",
            "0177.0.0.1",
            "0177.1",
            "017700000001",
            "127.0.0.1.",
            "127.000.000.001",
            "0x7f.0x0.0x0.0x1",
            "00000177.1",
            "0x000000007f.1",
            "127.0x0.1",
            "127.0.0x1",
            "0177.0x0.0.01",
            "127.0000000001",
            "127.1.",
            "0X7F.1",
            "0x7f.0.1",
            "0177.0.1",
            "0177.0X1",
            "127.0x000001",
            "2130706433.",
            "000000000000017700000001",
        ];
        for text in loopback {
            let wanted = Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));
            assert_eq!(Host::parse(text), Ok(wanted), "{text}");
        }
        for text in [
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[64:ff9b::127.0.0.1]",
            "[2002:7f00:1::]",
            "[0000:0000:0000:0000:0000:0000:0000:0001]",
            "[0::0001]",
            "[::0.0.0.1]",
            "[::127.0.0.1]",
            "[::7f00:1]",
            "[0:0:0:0:0:FFFF:127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:0001:0:0:0:0:0]",
        ] {
            let Ok(Host::Address(address)) = Host::parse(text) else { panic!("{text}") };
            assert!(super::super::range::special(address).is_some(), "{text}");
        }
    }

    #[test]
    fn a_text_that_ends_in_a_number_is_an_address_or_an_error() {
        for text in [
            "1.2.3.4.5",
            "256.1.1.1",
            "1.2.3.256",
            "4294967296",
            "0x100000000",
            "a.b.1",
            "09.1.1.1",
            "example.08",
            "1..1",
            "99999999999999999999999",
        ] {
            assert_eq!(Host::parse(text), Err(HostError::Number), "{text}");
        }
    }

    #[test]
    fn names_are_read_in_lower_case_and_others_are_refused() {
        for (text, wanted) in [
            ("API.Shop.Example.", "api.shop.example"),
            ("localhost", "localhost"),
            ("a_b.c-d", "a_b.c-d"),
            ("1a.2b", "1a.2b"),
            ("x.0xg", "x.0xg"),
        ] {
            assert_eq!(Host::parse(text), Ok(Host::Name(wanted.to_owned())));
        }
        for (text, error) in [
            ("", HostError::Missing),
            (".", HostError::Missing),
            ("bücher.example", HostError::Character('ü')),
            ("a b", HostError::Character(' ')),
            ("127。0。0。1", HostError::Character('。')),
            ("a%2eb", HostError::Character('%')),
            ("user@host", HostError::Character('@')),
            ("a..b", HostError::Length),
            ("[::1", HostError::Brackets),
            ("[fe80::1%25eth0]", HostError::Brackets),
            ("[127.0.0.1]", HostError::Brackets),
        ] {
            assert_eq!(Host::parse(text), Err(error), "{text}");
        }
        assert_eq!(Host::parse(&format!("{}.example", "a".repeat(64))), Err(HostError::Length));
        assert_eq!(Host::parse(&"a.".repeat(130)), Err(HostError::Length));
    }
}
