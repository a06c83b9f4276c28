//! Kafka: messages as records of a topic.
//!
//! - `connection`: the brokers, and how to log in.
//! - `plan`: the topic and the key, and the form of the messages.
//! - `answer`: the meaning of errors.
//! - `sender`: the sink.

mod answer;
mod connection;
mod plan;
mod sender;

pub use connection::{KafkaConnection, KafkaLive, KafkaLogin};
pub use plan::{KafkaPlan, KafkaPlanError};
pub use sender::KafkaSink;
