//! Brokers: the parts that all sinks of brokers share.
//!
//! - `link`: a named connection that is opened again after it was lost.
//! - `address`: the place in the broker, a template with the alphabet of the broker.
//! - `content`: the body of a message, and the headers beside it.

mod address;
mod content;
mod link;

pub use address::{Address, AddressError, Alphabet};
pub use content::{Content, ContentError, ContentForm};
pub use link::{Dial, Dialing, Link, LinkState};
