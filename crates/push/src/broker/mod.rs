//! Brokers: the parts that all sinks of brokers share.
//!
//! - `kind`: what a kind says about itself, and how its connections and sinks are made.
//! - `plan`: a named connection as the configuration has it.
//! - `link`: a named connection that is opened again after it was lost.
//! - `live`: an open connection.
//! - `confirms`: whose fault a missing confirm is.
//! - `address`: the place in the broker, a template with the alphabet of the broker.
//! - `endpoint`: the host and the port of a broker, and the way there.
//! - `content`: the body of a message, and the headers beside it.

mod address;
mod confirms;
mod content;
mod endpoint;
mod kind;
mod link;
mod live;
mod plan;

pub use address::{Address, AddressError, Alphabet};
pub(crate) use confirms::Confirms;
pub use content::{Content, ContentError, ContentForm};
pub(crate) use endpoint::first_open;
pub use endpoint::{Endpoint, EndpointError, Way};
pub(crate) use kind::PASSWORD;
pub use kind::{Broker, BrokerKind, Connect, Form, Member, Open, Opened, Settings, open};
pub use link::{Dial, Dialing, Link, LinkState};
pub use live::Live;
pub use plan::{ConnectionFault, ConnectionPlan, SecretText};
