//! The server around [`tickwheel_queue`], for HTTP and the protocol of beanstalkd: sockets, limits, health, metrics,
//! a graceful stop. It has no rule about tasks.
//!
//! ```text
//! socket -> listen (TLS, permits) -> a door (parses, prints) -> service (rights, quotas) -> the queue, and back
//! ```
//!
//! There are two doors: `http`, and `beanstalk` for clients of beanstalkd.
//!
//! - [`Config`] says where to listen and where tasks are kept. [`Server::bind`] takes the port and opens the store,
//!   and [`Server::run`] serves until it is told to stop.
//! - Every error is `application/problem+json`, even for a broken request line; bad input is never a 5xx.
//! - One module, `translate`, knows both the words of `tickwheel-api` and the commands of the queue.
//! - Logs go to [`tracing`] and contain neither keys nor payloads; the program installs a subscriber.
//!
//! - [`Tokens`], if there are any, define the rights and scopes of callers; they are checked before every route.
//! - Other computers are served only with tokens and over TLS, see [`Config::insecure`].

mod access;
mod base;
mod config;
mod doors;
pub mod events;
mod listen;
mod server;
mod service;
mod start_error;
mod targets;
mod telemetry;
pub mod transfer;
mod translate;

pub use access::authorizer::TokenFileError;
pub use access::tokens::{HASHED, TOKEN_BYTES_ADVISED, Tokens, TokensError, hashed};
pub use config::{BackupPlan, Config, PORT_DEFAULT, PostgresPlan, Store};
pub use doors::beanstalk::{BEANSTALK_PORT_DEFAULT, Beanstalk, JOB_BYTES_MAX};
pub use listen::socket::{ListenAt, ListenAtError};
pub use listen::tls::{TlsError, TlsFiles};
pub use server::Server;
pub use service::backups::BackupDirError;
pub use service::drain::Drain;
pub use service::permits::limits::Limits;
pub use start_error::StartError;
pub use targets::{
    ConnectionFault, ConnectionPlan, KeyUse, PushError, PushPlan, PushTls, SecretKeyError, SecretText,
    has_kind,
};
pub use telemetry::span::{Attribute, Span, SpanKind, SpanSink};
pub use tickwheel_push::broker::Endpoint;
pub use tickwheel_push::guard::Place;
