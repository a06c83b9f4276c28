//! [`Guard`]: decides which of the addresses of a host a webhook may be sent to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::host::Host;
use super::place::Place;
use super::range;

/// The rules about the places that webhooks may reach.
///
/// Without opened places, only `https` to public addresses is allowed, on port 80, 443 or any port from 1024 up. A place that an operator
/// opened may also be reached by `http`.
///
/// The guard is asked with the addresses that a look-up gave, and the connection is made to an address that it returned. So no second
/// look-up can lead elsewhere.
///
/// ```
/// use tickwheel_push::guard::{Guard, Host};
/// let guard = Guard::new(vec!["127.0.0.1:9000".parse()?]);
/// let host = Host::parse("hooks.example")?;
/// let loopback = ["127.0.0.1".parse()?];
/// assert!(guard.check(false, &host, 9000, &loopback).is_ok());
/// assert!(guard.check(true, &host, 9001, &loopback).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Guard {
    places: Vec<Place>,
}

/// Why a place may not be reached.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Blocked {
    /// The host has no address.
    #[error("{0} has no address")]
    NoAddress(String),
    /// Each address of the host is in a special range.
    #[error(
        "blocked address: {host} is {address} ({what}); an operator can open it with --push-allow {}",
        SocketAddr::new(*address, *port)
    )]
    Address {
        /// The host.
        host: String,
        /// The first of its addresses.
        address: IpAddr,
        /// The use of the range.
        what: &'static str,
        /// The port.
        port: u16,
    },
    /// The scheme is `http`, and no operator opened the place.
    #[error(
        "blocked address: http is allowed only for places that an operator opened with --push-allow; write https"
    )]
    Plain,
    /// The port is below 1024, and neither 80 nor 443.
    #[error(
        "blocked address: port {0} is not 80, 443 or 1024 and above; an operator can open it with --push-allow"
    )]
    Port(u16),
}

impl Guard {
    /// Returns a guard that also lets these places be reached.
    #[must_use]
    pub fn new(places: Vec<Place>) -> Self {
        Self { places }
    }

    /// Returns the addresses that may be reached, in their order. `is_https`: whether the scheme is `https`.
    ///
    /// # Errors
    /// [`Blocked`]: none may be reached.
    pub fn check(
        &self,
        is_https: bool,
        host: &Host,
        port: u16,
        addresses: &[IpAddr],
    ) -> Result<Vec<IpAddr>, Blocked> {
        let mut why = Blocked::NoAddress(host.to_string());
        let mut kept = Vec::new();
        for &address in addresses {
            match self.judge(is_https, host, port, address) {
                Ok(()) => kept.push(address),
                Err(blocked) if matches!(why, Blocked::NoAddress(_)) => why = blocked,
                Err(_) => {}
            }
        }
        if kept.is_empty() { Err(why) } else { Ok(kept) }
    }

    /// Checks what is known before a look-up, so that a target that can never work is refused at once.
    ///
    /// # Errors
    /// [`Blocked`]: a literal address, `localhost`, the scheme or the port is not allowed.
    pub fn check_early(&self, is_https: bool, host: &Host, port: u16) -> Result<(), Blocked> {
        match host {
            Host::Address(address) => self.judge(is_https, host, port, *address),
            // RFC 6761: this name is this machine, whatever a look-up says.
            Host::Name(name) if name == "localhost" => {
                let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
                self.check(is_https, host, port, &own).map(drop)
            }
            // A place may open the address that the name has later.
            Host::Name(_) if self.places.iter().any(|place| place.may_open(host, port)) => Ok(()),
            Host::Name(_) => judge_public(is_https, port),
        }
    }

    fn judge(&self, is_https: bool, host: &Host, port: u16, address: IpAddr) -> Result<(), Blocked> {
        if self.places.iter().any(|place| place.opens(host, address, port)) {
            return Ok(());
        }
        if let Some(what) = range::special(address) {
            let address = range::plain(address);
            return Err(Blocked::Address { host: host.to_string(), address, what, port });
        }
        judge_public(is_https, port)
    }
}

fn judge_public(is_https: bool, port: u16) -> Result<(), Blocked> {
    match port {
        _ if !is_https => Err(Blocked::Plain),
        80 | 443 | 1024.. => Ok(()),
        _ => Err(Blocked::Port(port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(places: &[&str]) -> Guard {
        Guard::new(places.iter().map(|place| place.parse().expect(place)).collect())
    }

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    fn host(text: &str) -> Host {
        Host::parse(text).expect(text)
    }

    #[test]
    fn denied_addresses_are_dropped_and_the_others_kept() {
        let mixed = addresses(&["10.0.0.1", "93.184.216.34", "::1", "2606:4700::1111"]);
        let kept = guard(&[]).check(true, &host("a.example"), 443, &mixed);
        assert_eq!(kept, Ok(addresses(&["93.184.216.34", "2606:4700::1111"])));
        let blocked = guard(&[]).check(true, &host("a.example"), 443, &addresses(&["10.0.0.1", "::1"]));
        let said = blocked.expect_err("both are private").to_string();
        assert!(said.contains("a.example is 10.0.0.1 (a private network)"), "{said}");
        assert_eq!(
            guard(&[]).check(true, &host("a.example"), 443, &[]),
            Err(Blocked::NoAddress("a.example".into()))
        );
    }

    #[test]
    fn schemes_and_ports() {
        let public = addresses(&["93.184.216.34"]);
        for (is_https, port, wanted) in [
            (true, 443, Ok(public.clone())),
            (true, 80, Ok(public.clone())),
            (true, 1024, Ok(public.clone())),
            (true, 65_535, Ok(public.clone())),
            (true, 22, Err(Blocked::Port(22))),
            (true, 1023, Err(Blocked::Port(1023))),
            (false, 443, Err(Blocked::Plain)),
            (false, 80, Err(Blocked::Plain)),
        ] {
            assert_eq!(guard(&[]).check(is_https, &host("a.example"), port, &public), wanted);
        }
        let opened = guard(&["93.184.216.34:22"]).check(false, &host("a.example"), 22, &public);
        assert_eq!(opened, Ok(public));
    }

    #[test]
    fn a_place_opens_what_it_names_and_no_more() {
        let check = |place: &str, name: &str, port: u16, address: &str| {
            guard(&[place]).check(true, &host(name), port, &addresses(&[address])).is_ok()
        };
        assert!(check("10.1.0.0/16", "a", 25, "10.1.255.255"));
        assert!(!check("10.1.0.0/16", "a", 443, "10.2.0.0"));
        assert!(check("10.1.0.0/16", "a", 443, "::ffff:10.1.0.1"));
        assert!(check("127.0.0.1:9000", "a", 9000, "127.0.0.1"));
        assert!(!check("127.0.0.1:9000", "a", 9001, "127.0.0.1"));
        assert!(!check("127.0.0.1:9000", "a", 9000, "127.0.0.2"));
        assert!(check("*.corp.example:443", "x.y.corp.example", 443, "10.0.0.1"));
        assert!(!check("*.corp.example:443", "corp.example", 443, "10.0.0.1"));
        assert!(!check("*.corp.example:443", "evilcorp.example", 443, "10.0.0.1"));
        assert!(!check("*.corp.example:443", "x.corp.example", 444, "10.0.0.1"));
        assert!(check("hooks.corp.example", "hooks.corp.example", 22, "10.0.0.1"));
        assert!(check("any", "a", 22, "127.0.0.1"));
        assert!(check("fd00::/8", "a", 443, "fd12::1"));
        assert!(!check("fd00::/8", "a", 443, "fc12::1"));
    }

    #[test]
    fn only_its_own_address_opens_the_metadata_of_a_cloud() {
        for metadata in [
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "::ffff:169.254.169.254",
            "fd00:ec2::254",
            "fe80::1",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
        ] {
            for place in [
                "any",
                "169.254.0.0/16",
                "169.254.169.254/32",
                "0.0.0.0/0",
                "::/0",
                "meta.example",
                "*.example",
            ] {
                let kept = guard(&[place]).check(true, &host("meta.example"), 80, &addresses(&[metadata]));
                assert!(kept.is_err(), "{place} opens {metadata}");
            }
        }
        let own = guard(&["169.254.169.254"]);
        assert!(own.check(false, &host("169.254.169.254"), 80, &addresses(&["169.254.169.254"])).is_ok());
        assert!(own.check(false, &host("meta.example"), 80, &addresses(&["169.254.170.2"])).is_err());
        // Azure's is a public address.
        assert!(guard(&[]).check(true, &host("a.example"), 443, &addresses(&["168.63.129.16"])).is_err());
        let own = guard(&["168.63.129.16:80"]);
        assert!(own.check(false, &host("168.63.129.16"), 80, &addresses(&["168.63.129.16"])).is_ok());
    }

    #[test]
    fn a_literal_address_is_refused_before_any_look_up() {
        for text in
            ["127.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:10.0.0.1]", "10.0.0.1", "169.254.169.254"]
        {
            assert!(guard(&[]).check_early(true, &host(text), 443).is_err(), "{text}");
        }
        assert_eq!(
            guard(&[]).check_early(true, &host("a.example"), 443),
            Ok(()),
            "its address is judged later"
        );
        assert_eq!(guard(&[]).check_early(false, &host("a.example"), 80), Err(Blocked::Plain));
    }

    /// A bug that was found: `http://localhost:8080` was taken, and each of its tasks failed.
    #[test]
    fn localhost_is_this_machine_before_any_look_up() {
        for places in [&[][..], &["10.1.0.0/16"], &["127.0.0.1:9000"], &["hooks.example"]] {
            let blocked = guard(places).check_early(false, &host("localhost"), 8_080);
            let said = blocked.expect_err("it is blocked").to_string();
            assert!(said.contains("localhost is 127.0.0.1 (this machine)"), "{said}");
            assert!(said.ends_with("--push-allow 127.0.0.1:8080"), "{said}");
        }
        for place in ["127.0.0.1", "127.0.0.0/8", "127.0.0.1:8080", "[::1]:8080", "localhost", "any"] {
            assert_eq!(guard(&[place]).check_early(false, &host("LocalHost."), 8_080), Ok(()), "{place}");
        }
    }

    #[test]
    fn a_place_that_cannot_open_the_name_or_its_port_changes_nothing_early() {
        let early = |place: &str, name: &str, port| guard(&[place]).check_early(false, &host(name), port);
        for (place, name, port) in [
            ("hooks.example", "other.example", 80),
            ("hooks.example:8443", "hooks.example", 80),
            ("*.corp.example", "corp.example", 80),
            ("10.0.0.1:9000", "hooks.example", 9_001),
        ] {
            assert_eq!(early(place, name, port), Err(Blocked::Plain), "{place}");
        }
        for (place, name, port) in [
            ("hooks.example", "hooks.example", 25),
            ("*.corp.example:25", "a.corp.example", 25),
            ("10.0.0.1:9000", "hooks.example", 9_000),
            ("10.0.0.0/8", "hooks.example", 25),
            ("any", "hooks.example", 25),
        ] {
            assert_eq!(early(place, name, port), Ok(()), "{place}");
        }
    }
}
