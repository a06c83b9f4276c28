//! The parts that the tests with a real PostgreSQL share.
//!
//! - `programs`: finds the programs of PostgreSQL, and runs them as a user that they accept.
//! - `server`: a server that the test starts, stops, kills, copies and promotes.
//! - `database`: a database of its own for one test.
//! - `session`: a connection that stays open between two statements.
//! - `node`: a process of Tickwheel inside of the test process.
//! - `process`: a process of Tickwheel that gets real signals.
//! - `worker`: the work of such a process: calls without end, and a line for each answer.
//! - `judge`: reads those lines, and knows what must never be.
//! - `proxy`: a way to a server whose answers take their time.
//! - `random`: pseudo-random numbers, equal for equal seeds.
//! - `until`: waits for a condition.

#![allow(dead_code, unused_imports, reason = "each test uses some of the parts")]

mod database;
mod judge;
mod node;
mod process;
mod programs;
mod proxy;
mod random;
mod server;
mod session;
mod until;
mod worker;

pub(crate) use database::Database;
pub(crate) use judge::Judge;
pub(crate) use node::{LEASE_MS, key, name, node, options, put, texts};
pub(crate) use process::{Process, number};
pub(crate) use programs::run;
pub(crate) use proxy::Proxy;
pub(crate) use random::Random;
pub(crate) use server::{Server, Settings, shared};
pub(crate) use session::Session;
pub(crate) use until::{pause, report, until};
pub(crate) use worker::Work;
