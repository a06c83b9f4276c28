//! [`Parcel`]: an answer between the thread and its caller, that comes back if nobody takes it.

use std::sync::mpsc::Sender;

use tickwheel_engine::{Acted, Answer, Token};

use crate::driver::Message;

/// Carries one answer. If it is dropped unopened, the tasks that it delivers go back: a caller that went away must not
/// keep them until their lease ends.
#[derive(Debug)]
pub(crate) struct Parcel {
    answer: Option<Answer>,
    back: Sender<Message>,
}

impl Parcel {
    pub(crate) fn new(answer: Answer, back: Sender<Message>) -> Self {
        Self { answer: Some(answer), back }
    }

    pub(crate) fn take(mut self) -> Answer {
        self.answer.take().expect("a parcel is opened once")
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        let tokens: Vec<Token> = match &self.answer {
            Some(Answer::Lease(Ok(leased))) => leased.iter().map(|leased| leased.token).collect(),
            Some(Answer::ById(Ok(Acted::Leased(leased)))) => vec![leased.token],
            _ => Vec::new(),
        };
        if !tokens.is_empty() {
            // The thread may have ended; then a stop has written the leases down.
            let _ = self.back.send(Message::Undelivered(tokens));
        }
    }
}
