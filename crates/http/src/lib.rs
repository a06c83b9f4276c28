//! One connection of HTTP/1.1 from the client's side, driven by the request that uses it.
//!
//! The client of Tickwheel's API and the webhooks of its server send requests over it. Each of the two makes its own sockets, keeps its own
//! pool, and has its own rules about what is sent again.

mod connection;
mod socket;

pub use connection::Connection;
pub use socket::Stream;
