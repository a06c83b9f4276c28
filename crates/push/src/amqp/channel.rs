//! [`Publisher`]: a channel on which many messages are under way at one time.
//!
//! Ground rules. One task publishes all messages of a channel, so that the client crate and the broker number them alike. The same task polls
//! all confirms: a return may come with the confirm of another message (see [`Look`]), so a confirm counts only after all confirms that
//! were there before it have been seen. A message that its sender has given up stays in the list until the broker confirms it, for the same
//! reason.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::protocol::AMQPErrorKind;
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation, Connection, Error, ErrorKind};
use tokio::sync::{mpsc, oneshot};

use super::connection::text_of;
use super::look::{Look, Match};

/// At most this many messages wait for a confirm. A broker that leaves more unconfirmed does not work, and a new channel
/// costs nothing: the messages are sent again.
const UNCONFIRMED_MAX: usize = 10_000;

/// A message for an exchange.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Publication {
    pub(crate) exchange: ShortString,
    pub(crate) routing_key: ShortString,
    /// Whether the broker returns a message that no queue takes.
    pub(crate) mandatory: bool,
    pub(crate) properties: BasicProperties,
    pub(crate) body: Vec<u8>,
}

/// The answer of the broker to one message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Confirmed {
    /// The broker has the message.
    Taken,
    /// No queue takes the message. The reason.
    Returned(String),
    /// The broker refused the message: `basic.nack`.
    Refused,
    /// The broker closed the channel because of this message. The reason.
    Blamed(String),
    /// The message is larger than the broker takes. The reason.
    TooLarge(String),
    /// The channel or the connection ended before the confirm. The reason.
    Lost(String),
}

/// A channel whose messages are confirmed. It is closed when it is dropped.
pub(crate) struct Publisher {
    channel: Channel,
    jobs: mpsc::UnboundedSender<Job>,
}

struct Job {
    publication: Publication,
    done: oneshot::Sender<Confirmed>,
}

impl Publisher {
    /// Opens a channel.
    pub(crate) async fn open(connection: &Connection) -> Result<Self, Error> {
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let (jobs, receiver) = mpsc::unbounded_channel();
        let mut line = Line { channel: channel.clone(), waiting: Vec::new() };
        tokio::spawn(async move {
            let mut receiver = receiver;
            poll_fn(|context| line.poll(&mut receiver, context)).await;
        });
        Ok(Self { channel, jobs })
    }

    /// Whether the channel is open, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.channel.status().connected() && !self.jobs.is_closed()
    }

    /// Publishes a message, and returns the answer of the broker. The message may reach the broker even if the future is dropped.
    pub(crate) async fn publish(&self, publication: Publication) -> Confirmed {
        let (done, answer) = oneshot::channel();
        let lost = || Confirmed::Lost("the channel was closed".to_owned());
        if self.jobs.send(Job { publication, done }).is_err() {
            return lost();
        }
        answer.await.unwrap_or_else(|_| lost())
    }
}

type Answer = Result<Confirmation, Error>;

/// The messages of a channel that wait for their confirms, in the order in which they were published.
struct Line {
    channel: Channel,
    waiting: Vec<Waiting>,
}

struct Waiting {
    confirm: Pin<Box<dyn Future<Output = Answer> + Send>>,
    answer: Option<Answer>,
    /// The look of a message that the broker returns if no queue takes it.
    look: Option<Look>,
    /// Why the message was returned, or may have been returned.
    returned: Option<String>,
    body_bytes: usize,
    done: Option<oneshot::Sender<Confirmed>>,
}

impl Line {
    /// Takes new messages, and settles those that are confirmed. Ready when there is no sender any more.
    fn poll(&mut self, jobs: &mut mpsc::UnboundedReceiver<Job>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match jobs.poll_recv(context) {
                Poll::Ready(Some(job)) => self.waiting.push(waiting(&self.channel, job)),
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        let mut is_settling = false;
        // Until a whole round finds no answer, because an answer may depend on one that came while the round ran.
        while self.poll_all(context) {
            is_settling = true;
        }
        if is_settling {
            self.settle();
        }
        if self.waiting.len() > UNCONFIRMED_MAX {
            let channel = self.channel.clone();
            self.waiting.clear();
            tokio::spawn(async move { channel.close(200, "too many unconfirmed messages".into()).await });
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Polls all messages once. Returns whether there was an answer.
    fn poll_all(&mut self, context: &mut Context<'_>) -> bool {
        let mut is_answered = false;
        let mut returns = Vec::new();
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.answer.is_none()) {
            if let Poll::Ready(answer) = waiting.confirm.as_mut().poll(context) {
                if let Ok(Confirmation::Ack(Some(message)) | Confirmation::Nack(Some(message))) = &answer {
                    let look = Look::of(message.routing_key.as_str(), &message.properties, &message.data);
                    returns.push((look, format!("returned: {} {}", message.reply_code, message.reply_text)));
                }
                waiting.answer = Some(answer);
                is_answered = true;
            }
        }
        for (look, reason) in returns {
            mark_returned(&mut self.waiting, look, &reason);
        }
        is_answered
    }

    fn settle(&mut self) {
        let is_alone = self.waiting.len() == 1;
        self.waiting.retain_mut(|waiting| {
            let Some(answer) = waiting.answer.take() else { return true };
            let confirmed = match (answer, waiting.returned.take()) {
                (Ok(Confirmation::Nack(_)), _) => Confirmed::Refused,
                (Ok(_), Some(reason)) => Confirmed::Returned(reason),
                (Ok(_), None) => Confirmed::Taken,
                (Err(error), _) => blame(&error, waiting.body_bytes, is_alone),
            };
            if let Some(done) = waiting.done.take() {
                // A sender that has given up takes no answer.
                let _ = done.send(confirmed);
            }
            false
        });
    }
}

/// Marks the message that was returned. It is still in the list, because the broker returns a message before it confirms it.
///
/// The broker may have changed the message on its way. Then each message that it could have been is marked. At worst, one that a queue has
/// taken is sent again; and none that no queue has taken counts as delivered.
fn mark_returned(waiting: &mut [Waiting], returned: Look, reason: &str) {
    let mark = |waiting: &mut Waiting| {
        waiting.returned.get_or_insert_with(|| reason.to_owned());
    };
    let could_be =
        |waiting: &Waiting, least| waiting.look.is_some_and(|look| look.matches(returned) >= least);
    // Messages that look the same as a whole go the same way, so that one stands for the other.
    let whole = |waiting: &&mut Waiting| waiting.returned.is_none() && could_be(waiting, Match::Whole);
    if let Some(same) = waiting.iter_mut().find(whole) {
        return mark(same);
    }
    let is_near = waiting.iter().any(|waiting| could_be(waiting, Match::Near));
    let least = if is_near { Match::Near } else { Match::None };
    waiting.iter_mut().filter(|waiting| could_be(waiting, least)).for_each(mark);
}

fn waiting(channel: &Channel, job: Job) -> Waiting {
    let Job { publication: Publication { exchange, routing_key, mandatory, properties, body }, done } = job;
    let look = mandatory.then(|| Look::of(routing_key.as_str(), &properties, &body));
    let body_bytes = body.len();
    let channel = channel.clone();
    let options = BasicPublishOptions { mandatory, immediate: false };
    // The first poll numbers the message and queues it. The later ones wait.
    let confirm = async move {
        let confirm = channel.basic_publish(exchange, routing_key, options, &body, properties).await?;
        drop(body);
        confirm.await
    };
    Waiting { confirm: Box::pin(confirm), answer: None, look, returned: None, body_bytes, done: Some(done) }
}

/// Decides whose fault it is that the channel ended. The broker does not name the message.
fn blame(error: &Error, body_bytes: usize, is_alone: bool) -> Confirmed {
    const CONTENT_TOO_LARGE: u16 = 311;
    const PRECONDITION_FAILED: u16 = 406;
    let reason = text_of(error);
    let code = match error.kind() {
        ErrorKind::ProtocolError(error) if matches!(error.kind(), AMQPErrorKind::Soft(_)) => error.get_id(),
        _ => return Confirmed::Lost(reason),
    };
    let names_size = reason.contains(&format!("message size {body_bytes} "));
    match code {
        CONTENT_TOO_LARGE | PRECONDITION_FAILED if names_size => Confirmed::TooLarge(reason),
        // A message that was alone on the channel is the cause. Among several, none is blamed: after a few failures, messages are sent one
        // by one.
        PRECONDITION_FAILED if is_alone => Confirmed::Blamed(reason),
        _ => Confirmed::Lost(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(routing_key: &str, priority: u8, body: &[u8]) -> Look {
        Look::of(routing_key, &BasicProperties::default().with_priority(priority), body)
    }

    /// Messages that wait: their routing keys, priorities and bodies. `None` is one that the broker does not return.
    fn waiting(looks: &[Option<(&str, u8, &[u8])>]) -> Vec<Waiting> {
        let one = |look: &Option<(&str, u8, &[u8])>| Waiting {
            confirm: Box::pin(std::future::pending()),
            answer: None,
            look: look.map(|(routing_key, priority, body)| self::look(routing_key, priority, body)),
            returned: None,
            body_bytes: 0,
            done: None,
        };
        looks.iter().map(one).collect()
    }

    fn marked(waiting: &[Waiting]) -> Vec<usize> {
        (0..waiting.len()).filter(|at| waiting[*at].returned.is_some()).collect()
    }

    #[test]
    fn a_return_marks_the_message_that_looks_the_same() {
        let mut waiting = waiting(&[None, Some(("a", 0, b"x")), Some(("a", 1, b"x")), Some(("a", 1, b"x"))]);
        mark_returned(&mut waiting, look("a", 1, b"x"), "first");
        assert_eq!(marked(&waiting), [2]);
        mark_returned(&mut waiting, look("a", 1, b"x"), "second");
        assert_eq!(marked(&waiting), [2, 3]);
    }

    #[test]
    fn a_return_that_the_broker_changed_marks_all_that_it_may_have_been() {
        let mut waiting = waiting(&[None, Some(("a", 0, b"x")), Some(("a", 1, b"x")), Some(("b", 0, b"x"))]);
        mark_returned(&mut waiting, look("a", 9, b"x"), "changed headers");
        assert_eq!(marked(&waiting), [1, 2]);
        mark_returned(&mut waiting, look("a", 9, b"x"), "the other one");
        assert_eq!(marked(&waiting), [1, 2], "both are marked already");
        mark_returned(&mut waiting, look("a", 9, b"changed"), "changed body");
        assert_eq!(marked(&waiting), [1, 2, 3], "one without `mandatory` is never returned");
    }
}
