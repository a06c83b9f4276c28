//! The promises, as predicates over what was seen.

use std::fmt;

use super::history::{Ack, Cancel, History, PutAnswer, Story};
use super::load::payload_of;

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) keys: usize,
    pub(crate) delivered: usize,
    pub(crate) again: usize,
    pub(crate) cancelled: usize,
    pub(crate) late_ms_max: i64,
    /// One line for each broken promise.
    pub(crate) broken: Vec<String>,
}

impl Verdict {
    pub(crate) fn of(history: &History) -> Self {
        let mut verdict = Self::default();
        for (key, story) in history.stories() {
            verdict.judge(&key, &story);
        }
        verdict
    }

    fn judge(&mut self, key: &str, story: &Story) {
        self.keys += 1;
        self.delivered += usize::from(!story.deliveries.is_empty());
        self.again += story.deliveries.len().saturating_sub(1);
        let mut broken = |promise: &str| self.broken.push(format!("{promise}: {key}: {story:?}"));

        // P1, P4: what was acknowledged comes, unless a cancel may have ended it.
        if let Some(owed) = story.owed()
            && !story.deliveries.iter().any(|delivery| delivery.due_at_ms == owed)
        {
            broken("LOST");
        }
        for (index, delivery) in story.deliveries.iter().enumerate() {
            // P2: zero tolerance, and it is due when a put said so.
            if delivery.received_ms < delivery.due_at_ms {
                broken("EARLY");
            }
            if delivery.payload != payload_of(key) {
                broken("ANOTHER PAYLOAD");
            }
            match story.puts.iter().position(|put| put.due_at_ms == delivery.due_at_ms) {
                None => broken("ANOTHER TIME"),
                Some(put) => {
                    // P5: after an acknowledged reschedule the old instant never fires.
                    let moved = story.puts[put + 1..].iter().any(|later| match later.answer {
                        PutAnswer::Acknowledged { answered, answered_ms } => {
                            answered_ms < delivery.due_at_ms || delivery.asked > answered
                        }
                        PutAnswer::None | PutAnswer::Leased => false,
                    });
                    if moved {
                        broken("AT ITS OLD TIME");
                    }
                    // P4: after an acknowledged ack, never again. A put that was sent twice may have made two tasks in turn.
                    let acked_before = story.deliveries[..index].iter().any(|earlier| {
                        earlier.due_at_ms == delivery.due_at_ms
                            && matches!(earlier.ack, Ack::Acked { answered } if delivery.asked > answered)
                    });
                    if acked_before && !story.puts[put].retried {
                        broken("AGAIN AFTER ITS ACK");
                    }
                }
            }
            self.late_ms_max = self.late_ms_max.max(delivery.received_ms - delivery.due_at_ms);
        }
        // P5: after `cancelled` no delivery starts; a cancel before the time is due leaves no room for one that had begun.
        if let Cancel::Cancelled { answered, answered_ms } = story.cancel {
            self.cancelled += 1;
            let before_due = story.puts.iter().all(|put| answered_ms < put.due_at_ms);
            if story.deliveries.iter().any(|delivery| before_due || delivery.asked > answered) {
                broken("DELIVERED AFTER ITS CANCEL");
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, delivered, again, cancelled, late_ms_max, broken } = self;
        write!(
            f,
            "{keys} keys, {delivered} delivered ({again} again), {cancelled} cancelled, at most {late_ms_max} ms late; {} promises broken",
            broken.len()
        )
    }
}
