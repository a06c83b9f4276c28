//! Brokers: the named connections of the configuration, and the sinks of targets that name them.
//!
//! - `broker`: what all of them have in common.
//! - `all`: the connections by their names.
//! - the others: one kind each, behind the feature of its name.

mod all;
#[cfg(feature = "amqp")]
mod amqp;
#[cfg(feature = "beanstalk")]
mod beanstalk;
#[cfg_attr(
    not(all(
        feature = "amqp",
        feature = "beanstalk",
        feature = "kafka",
        feature = "nats",
        feature = "redis"
    )),
    allow(dead_code, reason = "a program without all kinds of brokers does not use all that they share")
)]
mod broker;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "redis")]
mod redis;

pub use all::has_kind;
pub(super) use all::{Brokers, Named};
pub(super) use broker::Opened;
