//! The guard against requests to places inside the network of the server (server-side request forgery): which addresses a webhook may
//! reach. All of it is pure; the connector asks it between the look-up of a name and the connection. The name of a broker may not lead to a
//! metadata service of a cloud either.
//!
//! - `range`: the ranges of addresses that are denied.
//! - `place`: one place that an operator opened.
//! - `rules`: the decision.
//! - `host`: the host of a URL, with all literal forms of an address.

mod host;
mod place;
mod range;
mod rules;

pub use host::{Host, HostError};
pub use place::{Place, PlaceError};
pub(crate) use range::{metadata, plain};
pub use rules::{Blocked, Guard};
