//! The parts that the tests of brokers share.
//!
//! - `broker`: a real broker that the test starts, stops and kills.
//! - `foreign`: the libraries of receivers and publishers in other languages.
//! - `phases`: a proxy that stops in front of one piece of the talk.
//! - `refusing`: a proxy that answers with errors of Kafka.
//! - `pushed`: a queue whose tasks go to a sink.
//! - `tls_front`: TLS in front of a plain server.
//! - `until`: waits for what a broker or a receiver does.

#![allow(dead_code, unused_imports, reason = "each test uses some of the parts")]

mod broker;
pub(crate) mod foreign;
mod phases;
mod pushed;
mod refusing;
pub(crate) mod tls_front;
mod until;

pub(crate) use broker::{Broker, find};
pub(crate) use phases::{From, Phases};
pub(crate) use pushed::Pushed;
pub(crate) use refusing::Refusing;
pub(crate) use until::{until, until_or};
