//! Push: a queue gets a target, a webhook or a place in a broker, and then no worker has to poll. A message counts as delivered when the
//! other side has confirmed it.
//!
//! - [`Push`] gives queues their targets.
//! - [`Sink`] is the other side of a target. [`webhook::Webhook`] is one.
//! - [`dispatch`] decides what is leased, sent and settled.
//! - `kinds` is the table of the kinds of brokers. Each kind has a folder of its name, whose client is built with the feature of this name.
//! - `bridge` is a feature as well: it delays messages of RabbitMQ.
//! - [`broker`] has what the sinks of brokers share.
//! - [`guard`] keeps webhooks away from the network of the server.

mod advance;
#[cfg(feature = "amqp")]
pub mod amqp;
mod attempts;
#[cfg(feature = "beanstalk")]
pub mod beanstalk;
#[cfg(feature = "bridge")]
pub mod bridge;
#[cfg_attr(
    not(feature = "brokers"),
    allow(
        dead_code,
        unused_imports,
        reason = "a program without all kinds does not use all that they share"
    )
)]
pub mod broker;
pub mod dispatch;
mod figures;
pub mod guard;
mod hands;
#[cfg(feature = "kafka")]
pub mod kafka;
mod kinds;
mod message;
#[cfg(feature = "nats")]
pub mod nats;
mod outcome;
mod push;
#[cfg(feature = "redis")]
pub mod redis;
mod runner;
mod sink;
mod template;
mod text;
mod tls_error;
pub mod webhook;
mod worker;

// The code examples of these pages are compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/targets.md")]
struct Targets;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/verify-webhooks.md")]
struct VerifyWebhooks;

pub use attempts::{AttemptRecord, Attempts};
pub use figures::{Figures, Histogram, PUSH_BOUNDS_MS};
pub use hands::{Hand, HandState, Hands};
pub use kinds::{KIND_NAMES, KINDS, has_kind};
pub use message::Message;
pub use outcome::Outcome;
pub use push::{Notice, Pause, Push, Target, TargetState, TargetView};
pub use sink::{Attempt, Report, Sink};
pub use template::{Template, TemplateError, Unfilled};
pub use worker::{WORKER, is_own_lease};
