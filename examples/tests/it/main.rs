//! Runs the examples: each one against what it tells.

#[path = "../../../crates/push/tests/it/kit/broker.rs"]
#[allow(dead_code, reason = "the tests of the targets use the other parts")]
mod broker;
mod http;
#[path = "../../../crates/postgres/tests/it/kit/mod.rs"]
mod kit;
mod postgres;
mod push;
#[path = "../../../crates/push/tests/it/rabbit.rs"]
#[allow(dead_code, reason = "the tests of the targets use the other parts")]
mod rabbit;
mod run;
mod stories;
