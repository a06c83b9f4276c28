//! AMQP 0-9-1: messages to exchanges of RabbitMQ. A message is delivered when the broker has confirmed it and has not returned it.
//!
//! - `plan`: the settings of a target.
//! - `sender`: the sink.
//! - `connection`, `stream`: a connection that several targets share.
//! - `channel`, `look`: many messages under way on one channel, and which of them the broker returned.
//! - `packed`, `cbor`: a message of AMQP as the payload of a task.
//! - `delay`: the header `x-delay`.
//! - `kind`: the kind in the table of the kinds. It is a module of the table, because a program without the client has it as well.
//! - `target`: connections and targets, made from their settings.

mod cbor;
mod channel;
mod connection;
mod delay;
mod look;
mod packed;
mod plan;
mod properties;
mod sender;
mod stream;
mod target;

#[cfg(feature = "bridge")]
pub(crate) use channel::{Confirmed, Publication, Publisher};
#[cfg(feature = "bridge")]
pub(crate) use connection::text_of;
pub use connection::{AmqpConnection, AmqpDial, AmqpLogin};
#[cfg(feature = "bridge")]
pub(crate) use delay::integer;
pub use delay::{DELAY_HEADER, delay_of};
pub use packed::{CONTENT_TYPE_PACKED, Packed, UnpackError};
pub use plan::{AmqpForm, AmqpPlan, AmqpPlanError};
#[cfg(feature = "bridge")]
pub(crate) use properties::{everlasting, published_by, text, with_headers};
pub use sender::AmqpSink;
