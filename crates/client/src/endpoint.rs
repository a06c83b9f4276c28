//! The address of a server: its URL.

use crate::ClientError;
use std::path::PathBuf;
use tickwheel_api::shown;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// `HOST:PORT`, or `unix:PATH`.
    pub(crate) address: String,
    /// The path of a unix socket.
    pub(crate) socket: Option<PathBuf>,
}

/// The prefix of a unix socket's address, as in `serve --listen`.
const UNIX: &str = "unix:";

impl Endpoint {
    /// The host of a request. A unix socket has no host, and every server accepts `localhost`.
    pub(crate) fn host(&self) -> &str {
        if self.socket.is_some() { "localhost" } else { &self.address }
    }

    /// The host alone, as it is in a certificate.
    pub(crate) fn name(&self) -> &str {
        let host = self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }
}

/// Reads a server's URL. The default port is 80, or 443 over TLS, as in every URL.
pub(crate) fn endpoint_of(url: &str) -> Result<Endpoint, ClientError> {
    let bad = |why| ClientError::BadUrl { url: shown(url), why };
    if let Some(path) = url.strip_prefix(UNIX) {
        return match path {
            _ if cfg!(not(unix)) => Err(bad("this system has no unix sockets")),
            "" => Err(bad("its path is empty")),
            path => Ok(Endpoint { scheme: "http", address: url.to_owned(), socket: Some(path.into()) }),
        };
    }
    let scheme_bytes = url.find("://").map(|at| at + 3).unwrap_or_default();
    let (scheme, rest) = url.split_at(scheme_bytes);
    let (scheme, port_usual) = match scheme {
        _ if scheme.eq_ignore_ascii_case("http://") => ("http", 80),
        _ if scheme.eq_ignore_ascii_case("https://") => ("https", 443),
        _ => return Err(bad("it begins with none of `http://`, `https://` and `unix:`")),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains('@') {
        return Err(bad("it has a user name"));
    }
    if authority.contains(['/', '?', '#']) {
        return Err(bad("it has more than a host and a port"));
    }
    let (host, port) = host_and_port(authority).ok_or_else(|| bad("it has no host"))?;
    let port = match port {
        None => port_usual,
        Some(port) => port
            .parse::<u16>()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| bad("its port is not from 1 to 65535"))?,
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'.' || b == b'_';
    let named = !host.is_empty() && host.bytes().all(plain);
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let numbered = bracketed.is_some_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok());
    if !named && !numbered {
        return Err(bad("its host is neither a name nor an address"));
    }
    Ok(Endpoint { scheme, address: format!("{host}:{port}"), socket: None })
}

/// Splits `host:port`. An IPv6 address must be in brackets, because its colons could not be told from
/// that of the port.
fn host_and_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let host_bytes = match authority.strip_prefix('[') {
        Some(inner) => inner.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, rest) = authority.split_at(host_bytes);
    match rest.strip_prefix(':') {
        _ if host.is_empty() => None,
        Some(port) => Some((host, Some(port))),
        None if rest.is_empty() => Some((host, None)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (url, address) in [
            ("http://127.0.0.1:8463", "127.0.0.1:8463"),
            ("http://127.0.0.1:8463/", "127.0.0.1:8463"),
            ("HTTP://localhost", "localhost:80"),
            ("http://[::1]:8463", "[::1]:8463"),
            ("http://[2001:db8::1]", "[2001:db8::1]:80"),
            ("http://my_box.example:1", "my_box.example:1"),
            ("https://box:8463", "box:8463"),
            ("HTTPS://box", "box:443"),
        ] {
            let endpoint = endpoint_of(url).expect(url);
            assert_eq!(endpoint.address, address);
            let name = endpoint.name();
            assert!(address.starts_with(name) || address.starts_with(&format!("[{name}]:")), "{endpoint:?}");
            assert!(url.to_lowercase().starts_with(&format!("{}://", endpoint.scheme)), "{endpoint:?}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn sockets() {
        for (url, path) in [("unix:/run/tickwheel/http", "/run/tickwheel/http"), ("unix:a b", "a b")] {
            let endpoint = endpoint_of(url).expect(url);
            assert_eq!(
                (endpoint.scheme, endpoint.address.as_str(), endpoint.host()),
                ("http", url, "localhost")
            );
            assert_eq!(endpoint.socket, Some(path.into()));
        }
        let error = endpoint_of("unix:").expect_err("no path");
        assert!(
            error.to_string().contains("its path is empty") && error.to_string().contains("unix:/run/"),
            "{error}"
        );
    }

    #[test]
    fn refused() {
        for (url, why) in [
            ("", "it begins with none of `http://`, `https://` and `unix:`"),
            ("127.0.0.1:8463", "it begins with none of `http://`, `https://` and `unix:`"),
            ("ftp://box", "it begins with none of `http://`, `https://` and `unix:`"),
            ("http://", "it has no host"),
            ("http://:80", "it has no host"),
            ("http://a@b", "it has a user name"),
            ("http://box/api", "it has more than a host and a port"),
            ("http://box?x", "it has more than a host and a port"),
            ("http://box:0", "its port is not from 1 to 65535"),
            ("http://box:65536", "its port is not from 1 to 65535"),
            ("http://box:", "its port is not from 1 to 65535"),
            ("http://::1:80", "it has no host"),
            ("http://[::1", "it has no host"),
            ("http://[::1]x", "it has no host"),
            ("http://[box]:80", "its host is neither a name nor an address"),
            ("http://b ox", "its host is neither a name nor an address"),
            ("http://bäx", "its host is neither a name nor an address"),
        ] {
            match endpoint_of(url) {
                Err(ClientError::BadUrl { why: found, .. }) => assert_eq!(found, why, "{url}"),
                other => panic!("{url}: {other:?}"),
            }
        }
    }
}
