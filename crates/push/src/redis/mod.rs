//! Redis: messages as entries of a stream, or as elements of a list.
//!
//! - `connection`: the server, and the way there.
//! - `plan`: the key, and the form of the messages.
//! - `answer`: the meaning of errors.
//! - `replicas`: the wait for copies.
//! - `sender`: the sink.
//! - `kind`: the kind in the table of the kinds. It is a module of the table, because a program without the client has it as well.
//! - `target`: connections and targets, made from their settings.

mod answer;
mod connection;
mod plan;
mod replicas;
mod sender;
mod target;

pub use connection::{RedisConnection, RedisLive};
pub use plan::{ListEnd, RedisPlan, RedisPlanError, Structure};
pub use sender::RedisSink;
