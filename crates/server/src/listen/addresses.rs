//! The number of connections of each address.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts connections by address, so that one address cannot take all permits.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    max: usize,
    open: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// A counted connection. Dropping it ends the count.
#[derive(Debug)]
pub(crate) struct Share {
    of: Option<IpAddr>,
    addresses: Addresses,
}

impl Addresses {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, open: Arc::default() }
    }

    /// The largest number of connections that one address may have.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Counts one more connection; `None`: the address already has its largest number. Connections of this computer,
    /// by an address or by a path (`from` is `None`), are not counted: behind a proxy on this computer all clients
    /// look alike.
    pub(crate) fn enter(&self, from: Option<IpAddr>) -> Option<Share> {
        let of = from.filter(|from| !is_loopback(from)).map(household);
        if let Some(of) = of {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let count = open.get(&of).copied().unwrap_or_default();
            if count >= self.max {
                return None;
            }
            open.insert(of, count + 1);
        }
        Some(Share { of, addresses: self.clone() })
    }
}

/// The address that stands for all addresses of one computer. For IPv6 this is the network (the upper 64 bits).
pub(crate) fn household(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(from) => IpAddr::V6(Ipv6Addr::from_bits(from.to_bits() >> 64 << 64)),
        from @ IpAddr::V4(_) => from,
    }
}

/// Whether the address is in 127.0.0.0/8 or is `::1`. An IPv4 address written as IPv6 counts as well.
pub(crate) fn is_loopback(ip: &IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

impl Drop for Share {
    fn drop(&mut self) {
        let Some(of) = self.of else { return };
        let mut open = self.addresses.open.lock().unwrap_or_else(PoisonError::into_inner);
        match open.get_mut(&of) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&of)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_at_most_its_share() {
        let addresses = Addresses::new(2);
        let enter = |from: &str| addresses.enter(Some(from.parse().expect("an address")));
        let held = [enter("192.0.2.1"), enter("::ffff:192.0.2.1")];
        assert!(held.iter().all(Option::is_some));
        assert!(enter("192.0.2.1").is_none());
        let other = enter("192.0.2.2");
        assert!(other.is_some(), "another's are its own");
        let six = [enter("2001:db8::1"), enter("2001:db8::2")];
        assert!(enter("2001:db8::3").is_none() && enter("2001:db8:0:1::1").is_some(), "{six:?}");
        assert!((0..10).map(|_| enter("127.0.0.1")).collect::<Vec<_>>().iter().all(Option::is_some));
        assert!((0..10).map(|_| addresses.enter(None)).collect::<Vec<_>>().iter().all(Option::is_some));
        drop(held);
        assert!(enter("192.0.2.1").is_some(), "they are given back");
        drop((other, six));
        assert!(addresses.open.lock().expect("no panic").is_empty());
    }
}
