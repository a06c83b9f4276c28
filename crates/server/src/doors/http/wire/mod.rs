//! One connection: bytes are judged before anything parses them for meaning.
//!
//! ```text
//! socket -> Gate (strict framing, size and time limits) -> hyper (HTTP/1.1) -> the routes
//! ```
//!
//! The [`Gate`](gate::Gate) lets a request's head through only as a whole and only if its framing has exactly one
//! reading, so no two parsers on the way can disagree about where a request ends. What it refuses, it answers itself
//! with a problem and closes the connection.

mod chunks;
mod connection;
mod fault;
mod gate;
mod head;
mod rest;
mod turn;

pub(crate) use connection::{Peer, refuse, serve};
pub(crate) use fault::{Fault, Rule};
pub(crate) use gate::Timeouts;
pub(crate) use turn::Turn;
