//! Redis: messages as entries of a stream, or as elements of a list.
//!
//! - `connection`: the server, and the way there.
//! - `plan`: the key, and the form of the messages.
//! - `answer`: the meaning of errors.
//! - `replicas`: the wait for copies.
//! - `sender`: the sink.

mod answer;
mod connection;
mod plan;
mod replicas;
mod sender;

pub use connection::{RedisConnection, RedisLive};
pub use plan::{ListEnd, RedisPlan, RedisPlanError, Structure};
pub use sender::RedisSink;
