//! Kafka: messages as records of a topic.
//!
//! - `connection`: the brokers, and how to log in.
//! - `plan`: the topic and the key, and the form of the messages.
//! - `answer`: the meaning of errors.
//! - `sender`: the sink.
//! - `kind`: the kind in the table of the kinds. It is a module of the table, because a program without the client has it as well.
//! - `target`: connections and targets, made from their settings.

mod answer;
mod connection;
mod plan;
mod sender;
mod target;

pub use connection::{KafkaConnection, KafkaLive, KafkaLogin};
pub use plan::{KafkaPlan, KafkaPlanError};
pub use sender::KafkaSink;
