//! The protocol of PostgreSQL, from the side of a client: synchronous, on non-blocking sockets with a deadline.
//!
//! ```text
//! DatabaseUrl -> Connection::open -> Socket -> Transport (TLS) -> startup (authentication)
//! Pipeline -> Connection::run -> one flight, one Sync -> Answer -> Vec<StepResult>
//! ```
//!
//! A client of its own, because a commit needs three things that others hide: the tag of `COMMIT` (`ROLLBACK` is no
//! success), the notices of a step (a `WARNING` on a `COMMIT` makes it doubtful), and a clear difference between an
//! `ERROR` of the database (definite) and all else (unknown). It never cancels: a cancel of a `COMMIT` that waits
//! for a standby makes the server report success.

mod answer;
mod attempt;
mod connection;
mod environment;
mod error;
mod message;
mod param;
mod passfile;
mod pipeline;
mod row;
mod socket;
mod startup;
mod tls;
mod transport;
mod url;

#[cfg(test)]
mod tests;

pub(crate) use connection::Connection;
pub(crate) use environment::Environment;
pub(crate) use error::{DbError, HostError, OpenError, RunError};
pub(crate) use param::{Param, oid};
pub(crate) use pipeline::{Pipeline, StepResult};
pub(crate) use row::{Row, RowError};
pub(crate) use url::DatabaseUrl;
