//! Where connections come in: sockets, TLS, permits, shares of addresses.

pub(crate) mod addresses;
pub(crate) mod places;
pub(crate) mod socket;
pub(crate) mod standing;
pub(crate) mod tls;
