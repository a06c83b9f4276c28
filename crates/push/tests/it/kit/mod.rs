//! The parts that the tests of brokers share.
//!
//! - `broker`: a real broker that the test starts, stops and kills.
//! - `phases`: a proxy that stops in front of one piece of the talk.
//! - `refusing`: a proxy that answers with errors of Kafka.
//! - `pushed`: a queue whose tasks go to a sink.

#![allow(dead_code, unused_imports, reason = "each test uses some of the parts")]

mod broker;
mod phases;
mod pushed;
mod refusing;

pub(crate) use broker::{Broker, find, free_port};
pub(crate) use phases::{From, Phases};
pub(crate) use pushed::Pushed;
pub(crate) use refusing::Refusing;
