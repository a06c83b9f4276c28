//! [`Parcel`]: an answer between the thread and its caller, that comes back if nobody takes it.

use std::sync::mpsc::Sender;

use tickwheel_engine::Answer;

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
        if let Some(Answer::Lease(Ok(leased))) = &self.answer
            && !leased.is_empty()
        {
            let tokens = leased.iter().map(|leased| leased.token).collect();
            // The thread may have ended; then a stop has written the leases down.
            let _ = self.back.send(Message::Undelivered(tokens));
        }
    }
}
