//! The tests of the `tickwheel` program from outside, a module a story. All of them are one program, so that those that wait run beside
//! each other.

mod beanstalk;
#[cfg(feature = "bridge")]
mod bridge;
mod browser;
mod cli;
mod docs;
mod faults;
mod folder;
#[path = "../../../postgres/tests/it/kit/mod.rs"]
mod kit;
#[path = "../../../push/tests/it/kit/phases.rs"]
mod phases;
mod postgres;
mod program;
#[cfg(feature = "bridge")]
#[path = "../../../push/tests/it/rabbit.rs"]
#[allow(dead_code, reason = "the tests of the push crate use the rest")]
mod rabbit;
mod server;
mod stores;
