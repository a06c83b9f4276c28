//! The parts that the tests with a real PostgreSQL share.
//!
//! - `programs`: finds the programs of PostgreSQL, and runs them as a user that they accept.
//! - `server`: a server that the test starts, stops, kills, copies and promotes.
//! - `database`: a database of its own for one test.
//! - `session`: a connection that stays open between two statements.

#![allow(dead_code, unused_imports, reason = "each test uses some of the parts")]

mod database;
mod programs;
mod server;
mod session;

pub(crate) use database::Database;
pub(crate) use server::{Server, Settings, shared};
pub(crate) use session::Session;
