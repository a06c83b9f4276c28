//! The door for clients of beanstalkd: tubes are queues and jobs are tasks, the same that the HTTP door shows.
//!
//! ```text
//! socket -> wire (bytes, commands) -> session (what one connection uses, watches and holds) -> the queue, and back
//! ```
//!
//! The protocol itself, commands out of bytes and answers into bytes, is `tickwheel_api::beanstalk`. Answers leave in the order of their
//! commands, and each only when what it reports is durable. Commands of one kind that stand behind each other are carried out together, so
//! that one commit covers them all.

mod budget;
mod config;
mod counters;
mod cut;
mod desk;
mod held;
mod look;
mod plan;
mod session;
mod shown;
mod stats;
mod tubes;
mod wire;

pub use config::{BEANSTALK_PORT_DEFAULT, Beanstalk, JOB_BYTES_MAX};
pub(crate) use plan::Plan;
