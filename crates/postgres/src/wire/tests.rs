//! The wire against a real PostgreSQL, and against a server that says anything.

mod faults;
mod pipelines;
mod server;
mod sessions;
