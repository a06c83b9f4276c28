//! Who may speak to a server that trusts its own machine.
//!
//! On a loopback address the only guard is that nobody outside can connect. A browser breaks that: any page it shows can
//! send requests to `127.0.0.1`, and a page whose own name suddenly resolves to `127.0.0.1` (DNS rebinding) can read
//! the answers, too. So a request must name this machine as its host, and one that changes something must not come from
//! another site's page. Programs that are no browsers send neither `Origin` nor `Sec-Fetch-Site`, and pass.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use tickwheel_api::Problem;

use crate::problem::Refusal;

/// The rule for hosts and origins, by the address the server listens on.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Hosts {
    /// On loopback: the listening address, for requests must name it or another loopback name.
    only_local: Option<IpAddr>,
    /// What the pages of this server begin with.
    scheme: &'static str,
}

impl Hosts {
    pub(crate) fn of(listen: SocketAddr, tls: bool) -> Self {
        let scheme = if tls { "https://" } else { "http://" };
        Self { only_local: Some(listen.ip()).filter(is_loopback), scheme }
    }

    /// Refuses what a browser was tricked into sending.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        let host = host(&parts.uri, &parts.headers);
        if let (Some(listen), Some(host)) = (self.only_local, &host)
            && !is_local(host, listen)
        {
            return Err(Problem::foreign_host(host).into());
        }
        let reads_only = parts.method.is_safe();
        if !reads_only && self.is_cross_site(&parts.headers, host.as_deref()) {
            return Err(Problem::foreign_origin().into());
        }
        Ok(())
    }

    /// Whether a browser says that a page of another site sent this.
    fn is_cross_site(&self, headers: &HeaderMap, host: Option<&str>) -> bool {
        let fetch_site = headers.get("sec-fetch-site").map(|value| value.as_bytes());
        if fetch_site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
            return true;
        }
        let Some(origin) = headers.get(ORIGIN) else { return false };
        let site = origin.to_str().ok().and_then(|origin| origin.strip_prefix(self.scheme));
        // `null` and every other scheme are other sites.
        !site.zip(host).is_some_and(|(site, host)| site.eq_ignore_ascii_case(host))
    }
}

/// The host a request is for, as it was sent; `None`: an HTTP/1.0 client, which is no browser.
fn host(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let named = || headers.get(HOST).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    uri.authority().map(ToString::to_string).or_else(named)
}

/// Whether `host`, with or without a port, can only mean this machine.
fn is_local(host: &str, listen: IpAddr) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_end_matches('.');
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok_and(|ip| is_loopback(&ip) || ip == listen)
}

/// 127.0.0.0/8, `::1`, and the former written as an IPv6 address.
pub(crate) fn is_loopback(ip: &IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn answer(listen: &str, method: &str, headers: &[(&str, &str)]) -> Option<u16> {
        checked(Hosts::of(listen.parse().expect("an address"), false), method, headers)
    }

    fn checked(hosts: Hosts, method: &str, headers: &[(&str, &str)]) -> Option<u16> {
        let mut request = Request::builder().method(method).uri("/v1/queues");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        hosts
            .check(&request.body(()).expect("a request").into_parts().0)
            .err()
            .map(|refusal| refusal.problem().status)
    }

    #[test]
    fn on_loopback_only_names_of_this_machine_pass() {
        for good in [
            "127.0.0.1",
            "127.0.0.1:8463",
            "localhost:9",
            "LOCALHOST.",
            "[::1]:8463",
            "127.8.9.1",
            "[::ffff:127.0.0.1]",
        ] {
            assert_eq!(answer("127.0.0.1:8463", "GET", &[("host", good)]), None, "{good}");
        }
        for bad in [
            "evil.example",
            "localhost.evil.example",
            "192.168.1.1:8463",
            "127.0.0.1.nip.io",
            "",
            "a b",
            "[::2]",
        ] {
            assert_eq!(answer("127.0.0.1:8463", "GET", &[("host", bad)]), Some(421), "{bad:?}");
        }
        assert_eq!(
            answer("0.0.0.0:8463", "GET", &[("host", "tasks.example")]),
            None,
            "asked for with --insecure"
        );
        assert_eq!(answer("127.0.0.1:8463", "GET", &[]), None, "HTTP/1.0");
    }

    #[test]
    fn another_sites_page_changes_nothing() {
        let host = ("host", "localhost:8463");
        for listen in ["127.0.0.1:8463", "0.0.0.0:8463"] {
            let post = |name, value| answer(listen, "POST", &[host, (name, value)]);
            assert_eq!(post("origin", "http://localhost:8463"), None);
            assert_eq!(post("origin", "http://LOCALHOST:8463"), None);
            for origin in [
                "http://evil.example",
                "http://localhost",
                "http://localhost:1",
                "https://localhost:8463",
                "null",
                "",
            ] {
                assert_eq!(post("origin", origin), Some(403), "{origin:?}");
            }
            assert_eq!(post("sec-fetch-site", "same-origin"), None);
            assert_eq!(post("sec-fetch-site", "none"), None);
            assert_eq!(post("sec-fetch-site", "cross-site"), Some(403));
            assert_eq!(post("sec-fetch-site", "same-site"), Some(403));
            assert_eq!(
                answer(listen, "GET", &[host, ("origin", "http://evil.example")]),
                None,
                "it cannot read the answer"
            );
        }
    }

    #[test]
    fn over_tls_its_own_pages_are_those_over_tls() {
        let hosts = Hosts::of("192.0.2.1:443".parse().expect("an address"), true);
        let post = |origin| checked(hosts, "POST", &[("host", "tasks.example"), ("origin", origin)]);
        assert_eq!(post("https://tasks.example"), None);
        assert_eq!(post("http://tasks.example"), Some(403));
    }
}
