//! [`Sink`]: the other side of a target, which takes messages and confirms them.

use std::future::Future;
use std::pin::Pin;

use crate::message::Message;
use crate::outcome::Outcome;

/// An attempt to send a message, under way.
pub type Attempt<'a> = Pin<Box<dyn Future<Output = Report> + Send + 'a>>;

/// The report of one attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How the attempt ended.
    pub outcome: Outcome,
    /// The status of HTTP, if there was an answer of HTTP.
    pub status: Option<u16>,
    /// The first bytes of the answer.
    pub answer: Vec<u8>,
}

impl From<Outcome> for Report {
    fn from(outcome: Outcome) -> Self {
        Self { outcome, status: None, answer: Vec::new() }
    }
}

/// The other side of a target: a webhook, or a place in a broker.
///
/// A sink sends each message once for each call, and says how that ended. It keeps to its own time-out, and it is right about a
/// confirmation: [`Outcome::Delivered`] means that the other side has confirmed, and nothing else does.
///
/// Several messages may be under way at one time. A future that is dropped gives its message up; the other side may have got it.
pub trait Sink: Send + Sync {
    /// Sends one message.
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a>;
}
