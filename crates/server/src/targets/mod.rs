//! Targets: the queues whose tasks the server sends by itself, with their settings in the store and their state in memory.
//!
//! - `plan`: the part of the configuration that is about targets.
//! - `secret_keys`, `secrets`: the secrets of targets, encrypted in the store.
//! - `stored`: a target as the store has it.
//! - `outside`: the opened configuration: keys, named secrets, TLS, the places that may be reached.
//! - `brokers`: the named connections.
//! - `made`: the sink of a target.
//! - `keeper`: all targets of the server.
//! - `shown`: targets as the API shows them.
//! - `log_lines`: what the log says about them.

mod brokers;
mod keeper;
mod log_lines;
mod made;
mod outside;
pub(crate) mod plan;
mod secret_keys;
mod secrets;
mod shown;
mod stored;

pub(crate) use keeper::{TargetFigures, Targets};
pub(crate) use outside::Outside;
pub use outside::PushError;
pub use plan::{ConnectionPlan, PushPlan, PushTls, Sasl, SecretText};
pub use secret_keys::SecretKeyError;
pub(crate) use stored::check_settings;
