//! Targets: the queues whose tasks the server sends by itself, with their settings in the store and their state in memory.
//!
//! - `plan`: the part of the configuration that is about targets.
//! - `secret_keys`, `secrets`: the secrets of targets, encrypted in the store.
//! - `key_use`: which keys the secrets of stored targets need.
//! - `stored`: a target as the store has it.
//! - `outside`: the opened configuration: keys, named secrets, TLS, the places that may be reached.
//! - `brokers`: the named connections.
//! - `connection_states`: the states of the connections when they were last looked at.
//! - `made`: the sink of a target.
//! - `keeper`: all targets of the server.
//! - `facts`: what there is to say about a target when a task waits for it.
//! - `shown`: targets as the API shows them.
//! - `log_lines`: what the log says about them.

mod brokers;
mod connection_states;
mod facts;
mod keeper;
mod key_use;
mod log_lines;
mod made;
mod outside;
pub(crate) mod plan;
mod secret_keys;
mod secrets;
mod shown;
mod stored;

pub(crate) use facts::{HandFacts, HandState, TargetFacts};
pub(crate) use keeper::{TargetFigures, Targets};
pub use key_use::KeyUse;
pub(crate) use outside::Outside;
pub use outside::PushError;
pub use plan::{PushPlan, PushTls};
pub use secret_keys::SecretKeyError;
pub(crate) use stored::check_settings;
pub use tickwheel_push::broker::{ConnectionFault, ConnectionPlan, SecretText};
pub use tickwheel_push::has_kind;
