//! One connection: its bytes are checked before anything parses them.
//!
//! ```text
//! socket -> Gate (strict framing, size and time limits) -> hyper (HTTP/1.1) -> the door
//! ```
//!
//! The connection framer, [`gate::Gate`], passes the head of a request on only as a whole, and only if its framing
//! has exactly one reading. So no two parsers on the way can disagree about the end of a request. A refused request
//! gets a problem from the framer itself, and the connection is closed.

mod chunks;
mod connection;
mod fault;
mod gate;
mod head;
mod rest;
mod turn;

pub(crate) use connection::{refuse, serve};
pub(crate) use fault::{Fault, Rule};
pub(crate) use gate::Timeouts;
pub(crate) use turn::{Turn, Watch};
