//! The door for clients of beanstalkd: tubes are queues and jobs are tasks, the same as in the HTTP door.
//!
//! ```text
//! socket -> wire (bytes, commands) -> session (what one connection uses, watches and holds) -> the queue, and back
//! ```
//!
//! The protocol itself, commands from bytes and answers to bytes, is in `tickwheel_api::beanstalk`. Answers leave in
//! the order of their commands, each only when the reported change is durable. Successive commands of one kind are
//! carried out together, so that one commit covers them all.

mod budget;
mod command_error;
mod config;
mod counters;
mod door;
mod inspect;
mod plan;
mod reserved;
mod session;
mod stats;
mod tubes;
mod wire;

pub use config::{BEANSTALK_PORT_DEFAULT, Beanstalk, JOB_BYTES_MAX};
pub(crate) use plan::Plan;
