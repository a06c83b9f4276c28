//! [`Place`]: a place that an operator opened for webhooks.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use super::host::{Host, HostError};
use super::range;

/// A place that an operator opened for webhooks: an address, a range of addresses, a name, or all.
///
/// | text | opens |
/// |---|---|
/// | `10.1.0.0/16` | these addresses, every port |
/// | `127.0.0.1:9000`, `[::1]:9000` | one address and port |
/// | `hooks.corp.example:8443` | the addresses of this name, this port |
/// | `*.corp.example:443` | the addresses of each name below this one |
/// | `any` | every address but the metadata services of clouds |
///
/// Without a port, every port is open. A metadata service of a cloud, and each address of the local link, is opened by its own address alone.
///
/// ```
/// use tickwheel_push::guard::Place;
/// let place: Place = "10.1.0.0/16".parse()?;
/// assert_eq!(place.to_string(), "10.1.0.0/16");
/// assert!("10.1.0.0/33".parse::<Place>().is_err());
/// # Ok::<(), tickwheel_push::guard::PlaceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    what: What,
    port: Option<u16>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum What {
    Any,
    Address(IpAddr),
    Range {
        net: IpAddr,
        prefix: u32,
    },
    Name(String),
    /// Names that end in this text, which begins with a dot.
    Below(String),
}

/// Why a text names no place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlaceError {
    /// The host cannot be read.
    #[error("`{text}`: {why}")]
    Host {
        /// The text.
        text: String,
        /// The mistake in the host.
        why: HostError,
    },
    /// The port is no number from 1 to 65535.
    #[error("`{0}`: the port is not from 1 to 65535")]
    Port(String),
    /// The length of the prefix is not possible, or the text before it is no address.
    #[error(
        "`{0}`: write a range as an address, `/`, and the number of bits that its addresses share, such as `10.1.0.0/16`"
    )]
    Range(String),
    /// The address has bits behind the prefix.
    #[error("`{text}`: the range begins at {net}; write `{net}/{prefix}`")]
    NotTheFirst {
        /// The text.
        text: String,
        /// The first address of the range.
        net: IpAddr,
        /// The number of bits.
        prefix: u32,
    },
    /// A star stands elsewhere than before the first dot.
    #[error("`{0}`: a star stands for whole parts at the beginning of a name only, as in `*.corp.example`")]
    Star(String),
}

impl Place {
    /// Whether the place opens this address and port for a host of this name.
    pub(crate) fn opens(&self, host: &Host, address: IpAddr, port: u16) -> bool {
        if !self.may_open(host, port) {
            return false;
        }
        let address = range::plain(address);
        match &self.what {
            What::Address(open) => *open == address,
            // No range and no name opens the metadata of a cloud: a name could be made to lead there.
            _ if range::metadata(address).is_some() => false,
            What::Any | What::Name(_) | What::Below(_) => true,
            What::Range { net: IpAddr::V4(net), prefix } => match address {
                IpAddr::V4(address) => range::in_prefix(address.to_bits(), net.to_bits(), *prefix),
                IpAddr::V6(_) => false,
            },
            What::Range { net: IpAddr::V6(net), prefix } => match address {
                IpAddr::V6(address) => range::is_in(address, *net, *prefix),
                IpAddr::V4(_) => false,
            },
        }
    }

    /// Whether the place may open an address of this host, which is known after a look-up.
    pub(crate) fn may_open(&self, host: &Host, port: u16) -> bool {
        let is_for_host = match (&self.what, host) {
            (What::Name(_) | What::Below(_), Host::Address(_)) => false,
            (What::Name(open), Host::Name(name)) => open == name,
            (What::Below(end), Host::Name(name)) => name.ends_with(end) && name.len() > end.len(),
            (What::Any | What::Address(_) | What::Range { .. }, _) => true,
        };
        is_for_host && self.port.is_none_or(|open| open == port)
    }

    /// Whether the place is `any`.
    #[must_use]
    pub fn is_any(&self) -> bool {
        self.what == What::Any
    }
}

impl FromStr for Place {
    type Err = PlaceError;

    fn from_str(text: &str) -> Result<Self, PlaceError> {
        let whole = || text.to_owned();
        if text == "any" {
            return Ok(Self { what: What::Any, port: None });
        }
        if let Some((net, prefix)) = text.split_once('/') {
            return range_of(net, prefix, text);
        }
        // The last colon begins a port, unless the text is an IPv6 address, which needs brackets to have a port.
        let bare = text.parse::<IpAddr>().is_ok();
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !bare && !port.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        let port = port
            .map(|port| port.parse().ok().filter(|&port| port != 0).ok_or_else(|| PlaceError::Port(whole())));
        let port = port.transpose()?;
        let read = |host: &str| Host::parse(host).map_err(|why| PlaceError::Host { text: whole(), why });
        let what = match host.strip_prefix('*') {
            Some(rest) => match rest.strip_prefix('.').map(read).transpose()? {
                Some(Host::Name(name)) => What::Below(format!(".{name}")),
                _ => return Err(PlaceError::Star(whole())),
            },
            None if host.contains('*') => return Err(PlaceError::Star(whole())),
            None if bare => What::Address(range::plain(text.parse().expect("it was parsed above"))),
            None => match read(host)? {
                Host::Name(name) => What::Name(name),
                Host::Address(address) => What::Address(range::plain(address)),
            },
        };
        Ok(Self { what, port })
    }
}

fn range_of(net: &str, prefix: &str, text: &str) -> Result<Place, PlaceError> {
    let bad = || PlaceError::Range(text.to_owned());
    let net: IpAddr = net.parse().map_err(|_| bad())?;
    let prefix: u32 = prefix.parse().map_err(|_| bad())?;
    let first = match net {
        IpAddr::V4(v4) if prefix <= 32 => {
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            IpAddr::from(std::net::Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) if prefix <= 128 => {
            let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
            IpAddr::from(std::net::Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
        _ => return Err(bad()),
    };
    if first != net {
        return Err(PlaceError::NotTheFirst { text: text.to_owned(), net: first, prefix });
    }
    Ok(Place { what: What::Range { net, prefix }, port: None })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Any => f.write_str("any")?,
            What::Address(IpAddr::V6(address)) if self.port.is_some() => write!(f, "[{address}]")?,
            What::Address(address) => write!(f, "{address}")?,
            What::Range { net, prefix } => write!(f, "{net}/{prefix}")?,
            What::Name(name) => f.write_str(name)?,
            What::Below(end) => write!(f, "*{end}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_and_written() {
        for text in [
            "any",
            "10.1.0.0/16",
            "fd00::/8",
            "0.0.0.0/0",
            "127.0.0.1",
            "127.0.0.1:9000",
            "[::1]:9000",
            "::1",
            "hooks.corp.example:8443",
            "localhost",
            "*.corp.example:443",
        ] {
            let place: Place = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(place.to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("10.1.0.0/33", "`10.1.0.0/33`: write a range as an address"),
            ("10.1.2.3/16", "`10.1.2.3/16`: the range begins at 10.1.0.0; write `10.1.0.0/16`"),
            ("corp.example/8", "`corp.example/8`: write a range"),
            ("a:0", "`a:0`: the port is not"),
            ("a:x", "`a:x`: the port is not"),
            ("a.*.b", "`a.*.b`: a star"),
            ("*", "`*`: a star"),
            ("*corp.example", "`*corp.example`: a star"),
            ("", "``: the host is missing"),
            ("https://a", "`https://a`: write a range"),
        ] {
            let error = text.parse::<Place>().expect_err(text).to_string();
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}
