//! Which hosts and origins a request may name.
//!
//! On a loopback address the only protection is that no other computer can connect. A browser breaks that. Any page
//! that it shows can send requests to `127.0.0.1`. A page whose own name suddenly resolves to `127.0.0.1` (DNS
//! rebinding) can also read the answers. So a request must name this computer as its host, and a request that changes
//! something must not come from a page of another site. Programs that are not browsers send neither `Origin` nor
//! `Sec-Fetch-Site`, and pass.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::http::header::{HOST, ORIGIN};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri};
use tickwheel_api::Problem;

use crate::access::refusal::Refusal;
use crate::listen::addresses::is_loopback;
use crate::listen::socket::ListenAt;

/// The rule for hosts and origins. It depends on where the server listens.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// The listening address. Requests must name it, another loopback name, or one of `allowed`. `None`: a request
    /// may name any host.
    only_local: Option<IpAddr>,
    /// Names of proxies before this server, each with or without a port.
    allowed: Arc<[String]>,
    /// The scheme of this server's own pages; `None`: not known, because clients come through a proxy.
    scheme: Option<&'static str>,
}

/// Where a browser says which site a request comes from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The schemes of web pages.
const SCHEMES: [&str; 2] = ["http://", "https://"];

impl Hosts {
    /// The rule for a server that listens at `listen`. At a unix socket a request may name any host, because a browser
    /// reaches the socket only through a proxy. But if the server has allowed names, a request must have one of them:
    /// the proxy may pass on any name that the browser sends, which would allow DNS rebinding.
    pub(crate) fn of(listen: &ListenAt, tls: bool, allowed: &[String]) -> Self {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let (only_local, scheme) = match listen {
            ListenAt::Tcp(listen) => (Some(listen.ip()).filter(is_loopback), Some(SCHEMES[usize::from(tls)])),
            ListenAt::Unix(_) => (Some(here).filter(|_| !allowed.is_empty()), None),
        };
        Self { only_local, allowed: allowed.into(), scheme }
    }

    /// Whether `host` is the name of a proxy that is allowed.
    fn is_allowed(&self, host: &str) -> bool {
        self.allowed.iter().any(|allowed| {
            let host = if has_port(allowed) { host } else { without_port(host) };
            host.trim_end_matches('.').eq_ignore_ascii_case(allowed.trim_end_matches('.'))
        })
    }

    /// Refuses a request that a browser sent for a page of another site.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        let host = host(&parts.uri, &parts.headers);
        if let (Some(listen), Some(host)) = (self.only_local, host.as_deref())
            && !is_local(host, listen)
            && !self.is_allowed(host)
        {
            return Err(Problem::foreign_host(host).into());
        }
        // A stream of events reads only, but it holds one of few places.
        let reads_only = parts.method.is_safe() && parts.uri.path() != "/v1/events";
        if !reads_only && self.is_cross_site(&parts.headers, host.as_deref()) {
            return Err(Problem::foreign_origin().into());
        }
        Ok(())
    }

    /// Whether the headers show that a page of another site sent the request.
    fn is_cross_site(&self, headers: &HeaderMap, host: Option<&str>) -> bool {
        let fetch_site = headers.get(&SEC_FETCH_SITE).map(|value| value.as_bytes());
        if fetch_site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
            return true;
        }
        let Some(origin) = headers.get(ORIGIN) else { return false };
        // A proxy may speak TLS although this server does not.
        let schemes = match &self.scheme {
            Some(scheme) if !host.is_some_and(|host| self.is_allowed(host)) => std::slice::from_ref(scheme),
            _ => &SCHEMES[..],
        };
        let origin = origin.to_str().unwrap_or_default();
        let site = schemes.iter().find_map(|scheme| origin.strip_prefix(scheme));
        // `null` and every other scheme are other sites.
        !site.zip(host).is_some_and(|(site, host)| site.eq_ignore_ascii_case(host))
    }
}

/// The host of a request, as it was sent. `None`: an HTTP/1.0 client, which is no browser.
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<Cow<'a, str>> {
    let named = || headers.get(HOST).map(|value| String::from_utf8_lossy(value.as_bytes()));
    uri.authority().map(|authority| authority.as_str().into()).or_else(named)
}

/// Why no request can name this as its host. `None`: a request can.
pub(crate) fn no_host(name: &str) -> Option<&'static str> {
    if name.contains("://") || name.contains('/') {
        return Some("it is a URL");
    }
    if name.contains('*') {
        return Some("it has a pattern, and each name is given as a whole");
    }
    match name.parse::<Authority>() {
        Ok(authority) if authority.as_str().contains('@') => Some("it has a user"),
        Ok(authority) if authority.port_u16().is_none() && authority.as_str() != authority.host() => {
            Some("it has no port behind its colon")
        }
        Ok(authority) if !authority.host().is_empty() => None,
        _ => Some("it is malformed"),
    }
}

fn has_port(host: &str) -> bool {
    without_port(host).len() < host.len()
}

/// `[::1]:8463` becomes `[::1]`, and `tasks.example:8443` becomes `tasks.example`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if port.bytes().all(|b| b.is_ascii_digit())
                && (!name.starts_with('[') || name.ends_with(']')) =>
        {
            name
        }
        _ => host,
    }
}

/// Whether `host`, with or without a port, can only mean this computer.
fn is_local(host: &str, listen: IpAddr) -> bool {
    // Nearly all requests have one of these names.
    if matches!(without_port(host), "127.0.0.1" | "localhost") {
        return true;
    }
    // No browser sends a user with its host, and the part before the `@` would be taken for one.
    let Some(authority) = host.parse::<Authority>().ok().filter(|_| !host.contains('@')) else {
        return false;
    };
    let name = authority.host().trim_end_matches('.');
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    bare.parse::<IpAddr>().is_ok_and(|ip| is_loopback(&ip) || ip == listen)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn answer(listen: &str, method: &str, headers: &[(&str, &str)]) -> Option<u16> {
        checked(&hosts(listen, false, &[]), method, headers)
    }

    fn hosts(listen: &str, tls: bool, allowed: &[&str]) -> Hosts {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        assert!(allowed.iter().all(|name| no_host(name).is_none()), "{allowed:?}");
        Hosts::of(&listen.parse().expect("a place"), tls, &allowed)
    }

    fn checked(hosts: &Hosts, method: &str, headers: &[(&str, &str)]) -> Option<u16> {
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
            "evil.example@localhost",
            "evil.example:80@127.0.0.1:8463",
            "localhost@localhost",
            "@localhost",
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
    fn over_tls_only_pages_over_tls_are_of_this_site() {
        let hosts = hosts("192.0.2.1:443", true, &[]);
        let post = |origin| checked(&hosts, "POST", &[("host", "tasks.example"), ("origin", origin)]);
        assert_eq!(post("https://tasks.example"), None);
        assert_eq!(post("http://tasks.example"), Some(403));
    }

    #[test]
    fn a_name_of_a_proxy_passes_where_it_is_allowed() {
        let hosts = hosts("127.0.0.1:8463", false, &["tasks.example", "other.example:8443", "[2001:db8::1]"]);
        let get = |host| checked(&hosts, "GET", &[("host", host)]);
        for good in [
            "tasks.example",
            "Tasks.Example.",
            "tasks.example:443",
            "other.example:8443",
            "[2001:db8::1]:80",
            "localhost:8463",
        ] {
            assert_eq!(get(good), None, "{good}");
        }
        for bad in
            ["other.example", "other.example:80", "a.tasks.example", "tasks.example.evil", "[2001:db8::2]"]
        {
            assert_eq!(get(bad), Some(421), "{bad}");
        }
        let post = |host, origin| checked(&hosts, "POST", &[("host", host), ("origin", origin)]);
        for origin in ["https://tasks.example", "http://tasks.example"] {
            assert_eq!(post("tasks.example", origin), None, "the proxy may speak TLS: {origin}");
        }
        for origin in
            ["https://evil.example", "https://other.example:8443", "https://tasks.example:1", "null"]
        {
            assert_eq!(post("tasks.example", origin), Some(403), "{origin}");
        }
        assert_eq!(post("localhost:8463", "https://localhost:8463"), Some(403), "this is no proxy");
        let strict = [("host", "tasks.example"), ("sec-fetch-site", "cross-site")];
        assert_eq!(checked(&hosts, "POST", &strict), Some(403));
    }

    #[test]
    fn at_a_path_every_host_may_be_named() {
        let hosts = hosts("unix:/run/tickwheel.sock", false, &[]);
        let post = |host, origin| checked(&hosts, "POST", &[("host", host), ("origin", origin)]);
        assert_eq!(post("tasks.example", "https://tasks.example"), None);
        assert_eq!(post("tasks.example", "https://evil.example"), Some(403));
    }

    /// A bug that was found: `--allow-host` had no effect at a path, although a proxy may pass on the name of any
    /// page.
    #[test]
    fn at_a_path_only_allowed_names_pass_where_some_are() {
        let hosts = hosts("unix:/run/tickwheel.sock", false, &["tasks.example"]);
        let get = |host| checked(&hosts, "GET", &[("host", host)]);
        assert_eq!([get("tasks.example"), get("tasks.example:8443"), get("localhost")], [None; 3]);
        assert_eq!([get("evil.example"), get("192.0.2.1")], [Some(421); 2]);
    }

    #[test]
    fn what_is_no_host_cannot_be_allowed() {
        for bad in
            ["", "https://tasks.example", "tasks.example/", "*.example", "a b", "me@tasks.example", "a:b"]
        {
            assert!(no_host(bad).is_some(), "{bad:?}");
        }
    }
}
