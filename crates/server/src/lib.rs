//! The rim around [`tickwheel_queue`], HTTP and the protocol of beanstalkd: sockets, limits, health, metrics, a graceful stop. It has no rule
//! about tasks.
//!
//! ```text
//! socket -> listen (TLS, permits) -> a door (parses, prints) -> service (rights, quotas) -> the queue, and back
//! ```
//!
//! There are two doors: `http`, and `beanstalk` for clients of beanstalkd.
//!
//! - [`Config`] says where to listen and where tasks are kept; [`Server::bind`] takes both, [`Server::run`] serves until it
//!   is told to stop.
//! - Everything that goes wrong is `application/problem+json`, down to a broken request line; bad input is never a 5xx.
//! - One file, `translate`, knows both the words of `tickwheel-api` and the commands of the queue.
//! - Logs go to [`tracing`] and hold neither keys nor payloads; the program installs a subscriber.
//!
//! - Who may do what is said by [`Tokens`], if there are any: rights and scopes, checked in front of every route.
//! - Others than its own machine it serves only with tokens and over TLS, see [`Config::insecure`].

mod access;
mod base;
mod config;
mod doors;
pub mod events;
mod listen;
mod server;
mod service;
mod start_error;
mod telemetry;
pub mod transfer;
mod translate;

pub use access::authorizer::TokenFileError;
pub use access::tokens::{HASHED, TOKEN_BYTES_ADVISED, Tokens, TokensError, hashed};
pub use config::{BackupPlan, Config, PORT_DEFAULT, Store};
pub use doors::beanstalk::{BEANSTALK_PORT_DEFAULT, Beanstalk, JOB_BYTES_MAX};
pub use listen::socket::{ListenAt, ListenAtError};
pub use listen::tls::{TlsError, TlsFiles};
pub use server::Server;
pub use service::backups::BackupDirError;
pub use service::drain::Drain;
pub use service::jobs_of_before::take_over_jobs;
pub use service::limits::Limits;
pub use start_error::StartError;
pub use telemetry::span::{Attribute, Span, SpanKind, SpanSink};
