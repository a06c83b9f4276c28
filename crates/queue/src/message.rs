//! [`Message`]: what other threads send to a shard, through its [`Mailbox`]; and [`Delivered`]: an answer whose tasks go back if no caller
//! takes it.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use tickwheel_engine::{Acted, Answer, CallId, Command, QueueName, Token};

use crate::advance::Advance;
use crate::backup::Pin;
use crate::reply::Reply;

/// A message of another thread to one shard.
#[derive(Debug)]
pub(crate) enum Message {
    Call {
        call: CallId,
        /// The command is in a box, because each message takes as much memory as the largest variant.
        command: Box<Command>,
        /// For a lease call: the longest time that the call waits, in real time.
        wait: Duration,
        reply: Reply<Delivered>,
    },
    EndWait(CallId),
    Undelivered(Vec<Token>),
    Use(QueueName),
    Leave(QueueName),
    Pin(Pin),
    /// The store has something for the shard thread, which polls the store in its next turn.
    Store,
    Stop,
}

/// A message on its way to a thread that drives shards.
#[derive(Debug)]
pub(crate) enum Post {
    ToShard {
        /// The place of the shard among the shards of the thread.
        place: usize,
        message: Message,
    },
    /// A move of the virtual clock, which all shards have in common.
    Advance(Advance),
}

/// Sends messages to one shard. Several shards may share a thread, and then they share the channel of the thread.
#[derive(Clone, Debug)]
pub(crate) struct Mailbox {
    place: usize,
    thread: Sender<Post>,
}

impl Mailbox {
    /// Makes the mailbox of the shard at `place` among the shards of the thread that reads this channel.
    pub(crate) fn new(place: usize, thread: Sender<Post>) -> Self {
        Self { place, thread }
    }

    /// Sends a message to the shard. Gives the message back if the thread of the shard has ended.
    pub(crate) fn send(&self, message: Message) -> Result<(), Message> {
        if let Err(refused) = self.thread.send(Post::ToShard { place: self.place, message })
            && let Post::ToShard { message, .. } = refused.0
        {
            return Err(message);
        }
        Ok(())
    }

    /// Asks the thread of the shard to move the virtual clock. Answers the move if the thread has ended.
    pub(crate) fn advance(&self, advance: Advance) {
        if let Err(refused) = self.thread.send(Post::Advance(advance))
            && let Post::Advance(advance) = refused.0
        {
            advance.closed();
        }
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
            let _ = self.back.send(Message::Undelivered(tokens));
        }
    }
}
