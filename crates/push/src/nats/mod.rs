//! NATS: messages in a stream of JetStream.
//!
//! - `connection`: the servers, and how to log in.
//! - `plan`: the subject and the stream, and the form of the messages.
//! - `answer`: the meaning of the answers.
//! - `sender`: the sink.

mod answer;
mod connection;
mod plan;
mod sender;

pub use connection::{NatsConnection, NatsLive, NatsLogin};
pub use plan::{NatsPlan, NatsPlanError};
pub use sender::NatsSink;
