//! Push: a queue gets a target, a webhook or a place in a broker, and then no worker has to poll. A message counts as delivered when the
//! other side has confirmed it.
//!
//! - [`Sink`] is the other side of a target. [`webhook::Webhook`] is one.
//! - [`dispatch`] decides what is leased, sent and settled.
//! - [`guard`] keeps webhooks away from the network of the server.

pub mod guard;
mod message;
mod outcome;
mod sink;
mod template;
pub mod webhook;

pub use message::Message;
pub use outcome::{Outcome, Refusal};
pub use sink::{Attempt, Report, Sink};
pub use template::{Template, TemplateError, Unfilled};
