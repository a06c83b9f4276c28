//! [`Address`]: the URL of a broker, `amqp[s]://USER[:PASSWORD]@HOST[:PORT][/VHOST]`.

use std::fmt;
use std::str::FromStr;

use tickwheel_push::broker::Endpoint;

/// The port of RabbitMQ without TLS.
const PORT: u16 = 5672;
/// The port of RabbitMQ with TLS.
const PORT_TLS: u16 = 5671;
/// The user and the password of a new RabbitMQ, for connections of its own machine.
const GUEST: &str = "guest";
/// The virtual host of a new RabbitMQ.
const VHOST: &str = "/";

/// The reason for which a name of a URL cannot be decoded.
const BAD_NAME: &str = "a name has a bad `%`";

/// The address of a broker. Its `Debug` and `Display` forms show no password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) is_tls: bool,
    pub(crate) endpoint: Endpoint,
    pub(crate) vhost: String,
    /// The name of the user; `None`: the URL names none.
    user: Option<String>,
    password: Option<String>,
}

impl Address {
    /// Whether the URL has a password.
    pub(crate) fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Returns the user and the password. A password from elsewhere goes before that of the URL.
    ///
    /// # Errors
    /// There is a user and no password.
    pub(crate) fn login(&self, elsewhere: Option<String>) -> Result<(String, String), String> {
        let user = self.user.clone();
        match (user, elsewhere.or_else(|| self.password.clone())) {
            (user, Some(password)) => Ok((user.unwrap_or_else(|| GUEST.to_owned()), password)),
            (None, None) => Ok((GUEST.to_owned(), GUEST.to_owned())),
            (Some(user), None) if user == GUEST => Ok((user, GUEST.to_owned())),
            (Some(user), None) => Err(format!("there is no password for the user `{user}`")),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let bad = |why: &str| {
            format!(
                "{why}; write amqp://USER@HOST:PORT/VHOST, or amqps:// for TLS, with `%2F` for a `/` in a name"
            )
        };
        let parts = Parts::of(url, [("amqp", PORT), ("amqps", PORT_TLS)]).map_err(|why| bad(&why))?;
        let Parts { is_tls, user, password, endpoint, path } = parts;
        let vhost = decoded(path).ok_or_else(|| bad(BAD_NAME))?;
        let vhost = if vhost.is_empty() { VHOST.to_owned() } else { vhost };
        Ok(Self { is_tls, endpoint, vhost, user, password })
    }
}

/// The parts of a URL: `SCHEME://[USER[:PASSWORD]@]HOST[:PORT][/PATH]`.
pub(super) struct Parts<'a> {
    pub(super) is_tls: bool,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) endpoint: Endpoint,
    /// The text behind the first `/`, as it is written.
    pub(super) path: &'a str,
}

impl<'a> Parts<'a> {
    /// Reads the parts. `schemes`: the scheme without TLS and the one with TLS, each with the port of a URL without one.
    ///
    /// # Errors
    /// The reason.
    pub(super) fn of(url: &'a str, schemes: [(&str, u16); 2]) -> Result<Self, String> {
        let [(plain, port), (secure, port_tls)] = schemes;
        let behind = |scheme: &str| url.strip_prefix(scheme)?.strip_prefix("://");
        let (is_tls, port, rest) = match (behind(plain), behind(secure)) {
            (Some(rest), _) => (false, port, rest),
            (None, Some(rest)) => (true, port_tls, rest),
            (None, None) => return Err(format!("the URL does not begin with {plain}:// or {secure}://")),
        };
        if rest.contains(['?', '#']) {
            return Err("the URL has a `?` or a `#`".to_owned());
        }
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, host) = match place.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, place),
        };
        let decoded = |text: &str| decoded(text).ok_or(BAD_NAME);
        let (user, password) = match login.map(|login| login.split_once(':').ok_or(login)) {
            None => (None, None),
            Some(Ok((user, password))) => (Some(decoded(user)?), Some(decoded(password)?)),
            Some(Err(user)) => (Some(decoded(user)?), None),
        };
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let host = if has_port { host.to_owned() } else { format!("{host}:{port}") };
        let endpoint = host.parse().map_err(|_| "the URL has no valid host")?;
        let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
        Ok(Self { is_tls, user: filled(user), password: filled(password), endpoint, path })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "amqps" } else { "amqp" };
        write!(f, "{scheme}://{}, virtual host `{}`", self.endpoint, self.vhost)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Decodes percent-encoding; `None`: the text has a `%` without two hex digits, or is not UTF-8 afterwards.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        rest = behind;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digits = behind.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = &behind[2..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Address {
        url.parse().expect(url)
    }

    #[test]
    fn a_url_has_its_usual_values() {
        for (url, endpoint, vhost, user, password) in [
            ("amqp://a.example", "a.example:5672", "/", "guest", "guest"),
            ("amqps://a.example/", "a.example:5671", "/", "guest", "guest"),
            ("amqp://guest@[::1]/%2F", "[::1]:5672", "/", "guest", "guest"),
            ("amqp://u%40x:p%2Fw:y@a.example:1/shop", "a.example:1", "shop", "u@x", "p/w:y"),
            ("amqp://u:p@[::1]:7/a/b", "[::1]:7", "a/b", "u", "p"),
        ] {
            let address = read(url);
            assert_eq!((address.endpoint.to_string().as_str(), address.vhost.as_str()), (endpoint, vhost));
            assert_eq!(address.login(None), Ok((user.to_owned(), password.to_owned())), "{url}");
            assert_eq!(address.is_tls, url.starts_with("amqps"));
            assert!(!format!("{address:?} {address}").contains("p/w"), "{address:?}");
        }
    }

    #[test]
    fn a_password_from_elsewhere_goes_first() {
        let given = Some("other".to_owned());
        assert_eq!(read("amqp://u:p@a").login(given.clone()), Ok(("u".to_owned(), "other".to_owned())));
        assert_eq!(read("amqp://u@a").login(given), Ok(("u".to_owned(), "other".to_owned())));
        assert!(read("amqp://u@a").login(None).is_err());
        assert!(read("amqp://u:@a").login(None).is_err());
    }

    #[test]
    fn a_url_that_is_none_is_refused() {
        for url in [
            "",
            "http://a",
            "amqp://",
            "amqp://a:0",
            "amqp://a:x",
            "amqp://%2@a",
            "amqp://a/?x=1",
            "amqp://[::1",
        ] {
            assert!(url.parse::<Address>().is_err(), "{url}");
        }
    }
}
