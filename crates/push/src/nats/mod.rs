//! NATS: messages in a stream of JetStream.
//!
//! - `connection`: the servers, and how to log in.
//! - `plan`: the subject and the stream, and the form of the messages.
//! - `answer`: the meaning of the answers.
//! - `sender`: the sink.
//! - `kind`: the kind in the table of the kinds. It is a module of the table, because a program without the client has it as well.
//! - `target`: connections and targets, made from their settings.

mod answer;
mod connection;
mod plan;
mod sender;
mod target;

pub use connection::{NatsConnection, NatsLive, NatsLogin};
pub use plan::{NatsPlan, NatsPlanError};
pub use sender::NatsSink;
