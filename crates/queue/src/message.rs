//! [`Message`]: what other threads send to the shard thread; and [`Delivered`]: an answer whose tasks go back if no caller takes it.

use std::sync::mpsc::Sender;
use std::time::Duration;

use tickwheel_engine::{Acted, Answer, CallId, Command, QueueName, Token};

use crate::advance::Advance;
use crate::backup::Pin;

/// A message of another thread to the shard thread.
#[derive(Debug)]
pub(crate) enum Message {
    Call {
        call: CallId,
        /// The command is in a box, because each message takes as much memory as the largest variant.
        command: Box<Command>,
        /// For a lease call: the longest time that the call waits, in real time.
        wait: Duration,
        reply: oneshot::Sender<Delivered>,
    },
    EndWait(CallId),
    Undelivered(Vec<Token>),
    Use(QueueName),
    Leave(QueueName),
    Advance(Advance),
    Pin(Pin),
    /// The store has something for the shard thread, which polls the store in its next turn.
    Store,
    Stop,
}

/// An answer on its way to its caller. If the answer is dropped before the caller takes it, its tasks are given back to their queues.
/// Otherwise a caller that has gone would keep the tasks until their leases end.
#[derive(Debug)]
pub(crate) struct Delivered {
    answer: Option<Answer>,
    back: Sender<Message>,
}

impl Delivered {
    pub(crate) fn new(answer: Answer, back: Sender<Message>) -> Self {
        Self { answer: Some(answer), back }
    }

    pub(crate) fn take(mut self) -> Answer {
        self.answer.take().expect("an answer is taken once")
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        let tokens: Vec<Token> = match &self.answer {
            Some(Answer::Lease(Ok(leased))) => leased.iter().map(|leased| leased.token).collect(),
            Some(Answer::ById(Ok(Acted::Leased(leased)))) => vec![leased.token],
            _ => Vec::new(),
        };
        if !tokens.is_empty() {
            // The shard thread may have ended. Then a stop has written the leases down, and the tasks come again when the leases end.
            let _ = self.back.send(Message::Undelivered(tokens));
        }
    }
}
