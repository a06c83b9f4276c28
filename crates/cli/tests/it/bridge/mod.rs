//! `tickwheel bridge rabbitmq` against a real RabbitMQ broker: messages arrive when they are due, also if programs are killed.

#[path = "../../../push/tests/rabbit/broker.rs"]
#[allow(dead_code, reason = "the tests of the push crate use the rest")]
mod broker;
mod consumer;
mod ledger;
mod migrate;
#[path = "../cli/program.rs"]
mod program;
mod programs;
mod publisher;
mod refusals;
mod run;
mod start;
