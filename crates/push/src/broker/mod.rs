//! Brokers: the parts that all sinks of brokers share.
//!
//! - `link`: a named connection that is opened again after it was lost.
//! - `live`: an open connection.
//! - `confirms`: whose fault a missing confirm is.
//! - `address`: the place in the broker, a template with the alphabet of the broker.
//! - `endpoint`: the host and the port of a broker, and the way there.
//! - `content`: the body of a message, and the headers beside it.

mod address;
#[cfg(any(feature = "amqp", feature = "beanstalk", feature = "nats", feature = "redis"))]
#[cfg_attr(
    not(any(feature = "beanstalk", feature = "nats", feature = "redis")),
    allow(dead_code, reason = "the sink of RabbitMQ waits for its confirms in its own way")
)]
mod confirms;
mod content;
mod endpoint;
mod link;
mod live;

pub use address::{Address, AddressError, Alphabet};
#[cfg(any(feature = "amqp", feature = "beanstalk", feature = "nats", feature = "redis"))]
pub(crate) use confirms::Confirms;
pub use content::{Content, ContentError, ContentForm};
#[cfg(any(feature = "amqp", feature = "nats", feature = "redis"))]
pub(crate) use endpoint::first_open;
pub use endpoint::{Endpoint, EndpointError, Way};
pub use link::{Dial, Dialing, Link, LinkState};
pub use live::Live;
