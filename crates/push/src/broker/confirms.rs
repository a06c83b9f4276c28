//! [`Confirms`]: whose fault a missing confirm is.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::timeout;

use super::live::Live;
use crate::outcome::Outcome;

/// The confirms of one target.
///
/// The messages of the target are numbered on each connection, in the order in which they are sent. The numbers show whose fault a missing
/// confirm is, see [`Sent::silence`]. Other targets on the same connection do not count: their queue or stream may work while this one does not.
pub(crate) struct Confirms<L> {
    last: Mutex<Last<L>>,
}

/// The connection on which the last message was sent, and the numbers of its messages.
struct Last<L> {
    live: Weak<Live<L>>,
    numbers: Arc<Numbers>,
}

#[derive(Default)]
struct Numbers {
    /// The number of the last message that was sent.
    sent: AtomicU64,
    /// The highest number of a message that was confirmed.
    confirmed: AtomicU64,
}

/// A message that is being sent.
pub(crate) struct Sent<'l, L> {
    live: &'l Live<L>,
    numbers: Arc<Numbers>,
    number: u64,
}

impl<L> Default for Confirms<L> {
    fn default() -> Self {
        Self { last: Mutex::new(Last { live: Weak::new(), numbers: Arc::default() }) }
    }
}

impl<L> Confirms<L> {
    /// Begins to send a message on this connection.
    pub(crate) fn send<'l>(&self, live: &'l Arc<Live<L>>) -> Sent<'l, L> {
        // Each change is one step, so that a panic leaves nothing half done.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.live.as_ptr() != Arc::as_ptr(live) {
            *last = Last { live: Arc::downgrade(live), numbers: Arc::default() };
        }
        let numbers = Arc::clone(&last.numbers);
        let number = numbers.sent.fetch_add(1, Ordering::Relaxed) + 1;
        Sent { live, numbers, number }
    }
}

impl<L> Sent<'_, L> {
    /// Runs `answer` for at most the time `within`, and returns its answer. `Ok` is an answer that shows that the connection works.
    ///
    /// # Errors
    /// The outcome of a message without an answer in time, see [`silence`](Self::silence).
    pub(crate) async fn answer<C, E>(
        self,
        within: Duration,
        answer: impl Future<Output = Result<C, E>>,
    ) -> Result<Result<C, E>, Outcome> {
        let answer = timeout(within, answer).await;
        let answer = answer.map_err(|_| self.silence(&format!("no confirm within {within:?}")))?;
        if answer.is_ok() {
            self.confirmed();
        }
        Ok(answer)
    }

    /// Notes the confirm of the message.
    pub(crate) fn confirmed(&self) {
        self.numbers.confirmed.fetch_max(self.number, Ordering::Relaxed);
    }

    /// Returns the outcome of a message that got no answer in its time.
    ///
    /// - If a message of the target that was sent later on this connection is confirmed, then the way works. It is a failure of the task.
    /// - Otherwise the way is silent: the broker or the place in it hangs, or the network between swallows packets. It is a failure of the target,
    ///   and the next message opens another connection. The breaker opens at once: the broker may have taken each message that it does not confirm,
    ///   so each one more may arrive twice.
    pub(crate) fn silence(&self, reason: &str) -> Outcome {
        if self.numbers.confirmed.load(Ordering::Relaxed) > self.number {
            return Outcome::task_failed(reason);
        }
        self.live.leave();
        let reason = format!("{reason}, and no later message is confirmed").into();
        Outcome::TargetFailed { reason, open_ms: Some(0) }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    async fn silent(sent: Sent<'_, ()>) -> &'static str {
        sent.answer(WITHIN, pending::<Result<(), ()>>()).await.expect_err("there is no answer").name()
    }

    async fn confirmed(sent: Sent<'_, ()>) {
        sent.answer(WITHIN, ready(Ok::<_, ()>(()))).await.expect("an answer").expect("a confirm");
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_left_and_no_attempt_counts() {
        let (confirms, live) = (Confirms::default(), Arc::new(Live::new(())));
        confirmed(confirms.send(&live)).await;
        assert!(!live.is_left());
        assert_eq!(silent(confirms.send(&live)).await, "given_back", "only an earlier message is confirmed");
        assert!(live.is_left());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_others_overtake_has_failed() {
        let (confirms, live) = (Confirms::default(), Arc::new(Live::new(())));
        let first = confirms.send(&live);
        confirmed(confirms.send(&live)).await;
        assert_eq!((silent(first).await, live.is_left()), ("failed", false));
    }

    #[tokio::test(start_paused = true)]
    async fn errors_other_targets_and_other_connections_confirm_nothing() {
        let (confirms, live) = (Confirms::default(), Arc::new(Live::new(())));
        let first = confirms.send(&live);
        let lost = confirms.send(&live).answer(WITHIN, ready(Err::<(), _>("lost"))).await;
        assert_eq!(lost.expect("an answer"), Err("lost"));
        confirmed(Confirms::default().send(&live)).await;
        confirmed(confirms.send(&Arc::new(Live::new(())))).await;
        assert_eq!((silent(first).await, live.is_left()), ("given_back", true));
    }
}
