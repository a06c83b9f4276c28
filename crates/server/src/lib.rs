//! The rim around [`tickwheel_queue`], HTTP and the protocol of beanstalkd: sockets, limits, health, metrics, a graceful stop. It has no rule
//! about tasks.
//!
//! ```text
//! socket -> tls, if there is any -> wire (framing, limits) -> front (who asks) -> routes -> a handler -> translate -> the queue, and back
//! ```
//!
//! The other door, for clients of beanstalkd, is `beanstalk`: sockets, sessions, the queue.
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
mod addresses;
mod answer;
mod app;
mod aside;
mod audit;
mod backups;
mod batch;
mod batches;
mod beanstalk;
mod body;
mod bulk;
mod caller;
mod clock;
mod config;
mod cursor;
mod dead;
mod deliveries;
mod description;
mod drain;
pub mod events;
mod export;
mod export_places;
mod forecast;
mod front;
mod guard;
mod header;
mod health;
mod hex;
mod host;
mod import;
mod job;
mod jobs;
mod large_bodies;
mod leases;
mod lifecycle;
mod limits;
mod lines;
mod listen;
mod metrics;
mod notices;
mod others;
mod pages;
mod path;
mod pieces;
mod places;
mod problem;
mod producer;
mod query;
mod queue_pages;
mod queues;
mod quota;
mod refusals;
mod requests;
mod routes;
mod rows;
mod schedule;
mod schedules;
mod server;
mod settings;
mod span;
mod standing;
mod start_error;
mod stopping;
mod stream;
mod tasks;
mod tls;
mod tokens;
pub mod transfer;
mod translate;
mod turns;
mod watched;
mod wire;
mod work;

pub use backups::BackupDirError;
pub use config::{BEANSTALK_PORT_DEFAULT, BackupPlan, Beanstalk, Config, JOB_BYTES_MAX, PORT_DEFAULT, Store};
pub use drain::Drain;
pub use guard::TokenFileError;
pub use limits::Limits;
pub use listen::{ListenAt, ListenAtError};
pub use server::Server;
pub use span::{Attribute, Span, SpanKind, SpanSink};
pub use start_error::StartError;
pub use tls::{TlsError, TlsFiles};
pub use tokens::{HASHED, TOKEN_BYTES_ADVISED, Tokens, TokensError, hashed};
