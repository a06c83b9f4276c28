//! [`ManagementUrl`]: the address of the management API, `http[s]://[USER[:PASSWORD]@]HOST[:PORT][/PREFIX]`.

use std::fmt;
use std::str::FromStr;

use tickwheel_push::broker::Endpoint;

use super::address::{Address, Parts};

/// The port of the management API without TLS.
const PORT: u16 = 15_672;
/// The port of the management API with TLS.
const PORT_TLS: u16 = 15_671;

/// The address of the management API. Its `Debug` and `Display` forms show no password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ManagementUrl {
    pub(crate) is_tls: bool,
    endpoint: Endpoint,
    /// The `management.path_prefix` of the broker: empty, or with a `/` at its begin and none at its end.
    prefix: String,
    user: Option<String>,
    password: Option<String>,
}

impl ManagementUrl {
    /// The usual address at the host of a broker. A connection with TLS to the broker gives one with TLS here, so that the password is
    /// nowhere sent in the clear.
    pub(crate) fn beside(broker: &Address) -> Self {
        let port = if broker.is_tls { PORT_TLS } else { PORT };
        let endpoint = Endpoint { port, ..broker.endpoint.clone() };
        Self { is_tls: broker.is_tls, endpoint, prefix: String::new(), user: None, password: None }
    }

    /// Whether the URL has a password.
    pub(crate) fn has_password(&self) -> bool {
        self.password.is_some()
    }

    /// Returns the user and the password. Those that the URL does not name are those of the broker's address.
    ///
    /// # Errors
    /// There is a user and no password.
    pub(crate) fn login(
        &self,
        broker: &Address,
        elsewhere: Option<String>,
    ) -> Result<(String, String), String> {
        match (self.user.clone(), self.password.clone()) {
            (Some(user), Some(password)) => Ok((user, password)),
            (user, password) => {
                let (other, other_password) = broker.login(password.or(elsewhere))?;
                Ok((user.unwrap_or(other), other_password))
            }
        }
    }
}

impl FromStr for ManagementUrl {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("{why}; write http://HOST:PORT, or https:// for TLS");
        let parts = Parts::of(url, [("http", PORT), ("https", PORT_TLS)]).map_err(|why| bad(&why))?;
        let Parts { is_tls, user, password, endpoint, path } = parts;
        let path = path.trim_matches('/');
        if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("the path of the URL has a letter that is not of ASCII"));
        }
        let prefix = if path.is_empty() { String::new() } else { format!("/{path}") };
        Ok(Self { is_tls, endpoint, prefix, user, password })
    }
}

impl fmt::Display for ManagementUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.endpoint, self.prefix)
    }
}

impl fmt::Debug for ManagementUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker(url: &str) -> Address {
        url.parse().expect(url)
    }

    #[test]
    fn a_url_has_its_usual_values() {
        let amqp = broker("amqp://shop:secret@a.example/shop");
        for (url, shown, user, password) in [
            ("http://b.example", "http://b.example:15672", "shop", "secret"),
            ("https://b.example/", "https://b.example:15671", "shop", "secret"),
            ("http://[::1]:80/rabbit/", "http://[::1]:80/rabbit", "shop", "secret"),
            ("http://admin:p%40w@b.example", "http://b.example:15672", "admin", "p@w"),
            ("http://admin@b.example", "http://b.example:15672", "admin", "secret"),
        ] {
            let read: ManagementUrl = url.parse().expect(url);
            assert_eq!(format!("{read} {read:?}"), format!("{shown} {shown}"));
            assert_eq!(read.login(&amqp, None), Ok((user.to_owned(), password.to_owned())), "{url}");
        }
        let read: ManagementUrl = "http://b.example".parse().expect("a URL");
        let elsewhere = Some("other".to_owned());
        assert_eq!(read.login(&amqp, elsewhere), Ok(("shop".to_owned(), "other".to_owned())));
        assert!(read.login(&broker("amqp://shop@a.example"), None).is_err());
    }

    #[test]
    fn the_usual_address_is_at_the_host_of_the_broker() {
        for (url, shown) in
            [("amqp://a.example:1", "http://a.example:15672"), ("amqps://u:p@[::1]/x", "https://[::1]:15671")]
        {
            assert_eq!(ManagementUrl::beside(&broker(url)).to_string(), shown);
        }
    }

    #[test]
    fn a_url_that_is_none_is_refused() {
        for url in ["", "amqp://a", "http://", "http://a:x", "http://%2@a", "http://a/?x=1", "http://a/ä"] {
            assert!(url.parse::<ManagementUrl>().is_err(), "{url}");
        }
    }
}
