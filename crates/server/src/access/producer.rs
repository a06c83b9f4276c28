//! The caller whose share counts a batch, a large body, an export or a job.

use std::net::IpAddr;

use crate::listen::addresses::{household, is_loopback};

/// A caller, as far as the server can tell callers apart.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Producer {
    /// The bearer of the token with this hash.
    Token([u8; 32]),
    /// A client computer, if the server has no tokens.
    Address(IpAddr),
    /// A client on this computer, if the server has no tokens, or any client of the beanstalkd door. The server cannot
    /// distinguish the clients behind a local proxy, so no share limits them. Only the limit for all callers does.
    Local,
    /// The caller of a job that began before the last start of the server, which no share limits. It is not stored,
    /// because the hash of a short token would reveal the token.
    Earlier,
}

impl Producer {
    pub(crate) fn new(token: Option<[u8; 32]>, from: Option<IpAddr>) -> Self {
        match (token, from) {
            (Some(token), _) => Self::Token(token),
            (None, Some(from)) if !is_loopback(&from) => Self::Address(household(from)),
            (None, _) => Self::Local,
        }
    }

    /// Whether a share limits this caller. Otherwise only the limit for all callers does.
    pub(crate) fn has_share(self) -> bool {
        !matches!(self, Self::Local | Self::Earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_counts_before_an_address_and_this_machine_has_no_share() {
        let from = |address: &str| Producer::new(None, Some(address.parse().expect("an address")));
        assert_eq!((from("127.0.0.1"), from("::1")), (Producer::Local, Producer::Local));
        assert_eq!(Producer::new(None, None), Producer::Local, "it came by a path of the file system");
        assert!(!Producer::Local.has_share() && !Producer::Earlier.has_share());
        assert_eq!(from("2001:db8::1"), from("2001:db8::2"), "a machine has a network of them");
        assert_ne!(from("192.0.2.1"), from("192.0.2.2"));
        assert!(from("192.0.2.1").has_share());
        let token = Producer::new(Some([1; 32]), Some("127.0.0.1".parse().expect("an address")));
        assert_eq!((token, token.has_share()), (Producer::Token([1; 32]), true));
    }
}
