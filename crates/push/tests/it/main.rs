//! The tests of push, from outside of the crate: the rules of a target, webhooks, and each kind of broker against a real one. Those whose
//! program is missing say so loudly and are skipped.

mod advance;
#[cfg(feature = "amqp")]
mod amqp;
#[cfg(feature = "beanstalk")]
mod beanstalk;
#[cfg(feature = "bridge")]
mod bridge;
mod dispatcher;
#[cfg(feature = "kafka")]
mod kafka;
mod kit;
#[cfg(feature = "nats")]
mod nats;
#[cfg(all(feature = "amqp", feature = "beanstalk", feature = "kafka", feature = "nats", feature = "redis"))]
mod phases;
#[cfg(feature = "amqp")]
#[allow(dead_code, reason = "without the bridge, some parts are not used")]
mod rabbit;
#[cfg(all(feature = "amqp", feature = "beanstalk", feature = "kafka", feature = "nats", feature = "redis"))]
mod reasons;
#[cfg(feature = "redis")]
mod redis;
mod verifiers;
mod webhook;
