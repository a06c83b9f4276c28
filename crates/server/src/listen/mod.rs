//! How connections are accepted: sockets, TLS, permits, the largest number for one address.

pub(crate) mod addresses;
pub(crate) mod door;
pub(crate) mod listener;
pub(crate) mod permits;
pub(crate) mod socket;
pub(crate) mod standing;
pub(crate) mod stream;
pub(crate) mod tls;
