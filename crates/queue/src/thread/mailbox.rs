//! [`Mailbox`]: takes messages of other threads to a shard. [`Caller`]: sends calls to it. [`Delivered`]: an answer whose tasks go back if no
//! caller takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SendError, Sender};
use std::time::Duration;

use tickwheel_engine::{Acted, Answer, CallId, Command, QueueName, Token, Unavailable};

use super::advance::Advance;
use super::pin::Pin;
use super::reply::Reply;
use crate::panics::Panics;

/// A message to a thread that drives shards. `place` is the place of a shard among the shards of the thread.
#[derive(Debug)]
pub(crate) enum Message {
    Call {
        place: usize,
        call: CallId,
        /// The command is in a box, because each message takes as much memory as the largest variant.
        command: Box<Command>,
        /// For a lease call: the longest time that the call waits, in real time.
        wait: Duration,
        reply: Reply<Delivered>,
    },
    Signal {
        place: usize,
        signal: Signal,
    },
    /// A move of the virtual clock, which all shards have in common.
    Advance(Advance),
}

/// A message to a shard that is no call, and gets no answer.
#[derive(Debug)]
pub(crate) enum Signal {
    EndWait(CallId),
    Undelivered(Vec<Token>),
    Use(QueueName),
    Leave(QueueName),
    Pin(Pin),
    /// The store has something for the shard thread, which polls the store in its next turn.
    Store,
    Stop,
}

/// Sends messages to one shard. Several shards may share a thread, and then they share the channel of the thread.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox {
    place: usize,
    thread: Sender<Message>,
}

impl Mailbox {
    /// Makes the mailbox of the shard at `place` among the shards of the thread that reads this channel.
    pub(crate) fn new(place: usize, thread: Sender<Message>) -> Self {
        Self { place, thread }
    }

    /// Sends a signal to the shard. The error is [`Unavailable::Closed`]: the thread of the shard has ended.
    pub(crate) fn signal(&self, signal: Signal) -> Result<(), Unavailable> {
        let message = Message::Signal { place: self.place, signal };
        self.thread.send(message).map_err(|_| Unavailable::Closed)
    }

    /// Asks the thread of the shard to move the virtual clock. Answers the move if the thread has ended.
    pub(crate) fn advance(&self, advance: Advance) {
        if let Err(SendError(Message::Advance(advance))) = self.thread.send(Message::Advance(advance)) {
            advance.closed();
        }
    }
}

/// Sends calls to one shard. The callers of all shards of a queue number their calls together, and count the panics of wakers together.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    mailbox: Mailbox,
    calls: Arc<AtomicU64>,
    panics: Panics,
}

impl Caller {
    pub(crate) fn new(mailbox: Mailbox, calls: Arc<AtomicU64>, panics: Panics) -> Self {
        Self { mailbox, calls, panics }
    }

    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    /// Sends a call with the next number. Returns the number, and the receiver of the answer.
    pub(super) fn send(&self, command: Command, wait: Duration) -> (CallId, oneshot::Receiver<Delivered>) {
        let call = CallId(self.calls.fetch_add(1, Ordering::Relaxed));
        let (reply, receiver) = Reply::new(self.panics.clone());
        let Mailbox { place, thread } = &self.mailbox;
        let message = Message::Call { place: *place, call, command: Box::new(command), wait, reply };
        if let Err(SendError(Message::Call { command, reply, .. })) = thread.send(message) {
            let closed = command.unavailable(Unavailable::Closed);
            reply.send(Delivered::new(closed, self.mailbox.clone()));
        }
        (call, receiver)
    }
}

/// An answer on its way to its caller. If the answer is dropped before the caller takes it, its tasks are given back to their queues.
/// Otherwise a caller that has gone would keep the tasks until their leases end.
#[derive(Debug)]
pub(crate) struct Delivered {
    /// The answer, or why the outcome of the call is unknown. `None` once it was taken.
    outcome: Option<Result<Answer, Arc<str>>>,
    back: Mailbox,
}

impl Delivered {
    pub(crate) fn new(answer: Answer, back: Mailbox) -> Self {
        Self { outcome: Some(Ok(answer)), back }
    }

    /// Makes the end of a call whose outcome is unknown.
    pub(crate) fn unknown(why: Arc<str>, back: Mailbox) -> Self {
        Self { outcome: Some(Err(why)), back }
    }

    /// Returns the answer, or why the outcome of the call is unknown.
    pub(crate) fn take(mut self) -> Result<Answer, Arc<str>> {
        self.outcome.take().expect("an answer is taken once")
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        let tokens: Vec<Token> = match &self.outcome {
            Some(Ok(Answer::Lease(Ok(leased)))) => leased.iter().map(|leased| leased.token).collect(),
            Some(Ok(Answer::ById(Ok(Acted::Leased(leased))))) => vec![leased.token],
            _ => Vec::new(),
        };
        if !tokens.is_empty() {
            // The shard thread may have ended. Then a stop has written the leases down, and the tasks come again when the leases end.
            let _ = self.back.signal(Signal::Undelivered(tokens));
        }
    }
}
