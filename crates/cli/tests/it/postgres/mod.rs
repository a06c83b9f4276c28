//! The `tickwheel` program on a real PostgreSQL.

mod clock;
mod demo;
#[path = "../cli/folder.rs"]
mod folder;
#[path = "../../../postgres/tests/kit/mod.rs"]
mod kit;
mod portable;
#[path = "../cli/program.rs"]
mod program;
#[path = "../cli/server.rs"]
#[allow(dead_code, reason = "the tests of the command line use the rest")]
mod server;
#[path = "../cli/stores.rs"]
#[allow(dead_code, reason = "this suite chooses its stores itself")]
mod stores;
mod takeovers;
mod transactions;
mod words;
