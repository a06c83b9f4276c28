//! [`Live`]: an open connection, and what its confirms say about it.

use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use crate::outcome::Outcome;

/// An open connection to a broker. Messages of several targets may be under way on it at one time.
///
/// Messages are numbered in the order in which they are sent. The numbers show whose fault a missing confirm is, see
/// [`confirm`](Self::confirm).
#[derive(Debug)]
pub struct Live<L> {
    inner: L,
    /// The number of the last message that was sent.
    sent: AtomicU64,
    /// The highest number of a message that was confirmed.
    confirmed: AtomicU64,
    is_left: AtomicBool,
}

impl<L> Live<L> {
    pub(super) fn new(inner: L) -> Self {
        let (sent, confirmed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { inner, sent, confirmed, is_left: AtomicBool::new(false) }
    }

    /// Sends a message: runs `answer` for at most the time `within`, and returns its answer. `Ok` is a confirm.
    ///
    /// # Errors
    /// The outcome of a message without an answer in time, see [`silence`](Self::silence).
    pub async fn confirm<C, E>(
        &self,
        within: Duration,
        answer: impl Future<Output = Result<C, E>>,
    ) -> Result<Result<C, E>, Outcome> {
        let number = self.number();
        let answer = timeout(within, answer).await;
        let answer = answer.map_err(|_| self.silence(number, &format!("no confirm within {within:?}")))?;
        if answer.is_ok() {
            self.confirmed(number);
        }
        Ok(answer)
    }

    /// Returns the number of a message that is about to be sent.
    pub(crate) fn number(&self) -> u64 {
        self.sent.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes the confirm of a message.
    pub(crate) fn confirmed(&self, number: u64) {
        self.confirmed.fetch_max(number, Ordering::Relaxed);
    }

    /// Returns the outcome of a message that got no answer in its time.
    ///
    /// - If a message that was sent later is confirmed, then the connection works. It is a failure of the task.
    /// - Otherwise the connection is silent: the broker hangs, or the network between swallows packets. It is a failure of the target, and the
    ///   next message opens another connection.
    pub(crate) fn silence(&self, number: u64, reason: &str) -> Outcome {
        if self.confirmed.load(Ordering::Relaxed) > number {
            return Outcome::task_failed(reason);
        }
        self.leave();
        Outcome::target_failed(format!("{reason}, and the connection is silent"))
    }

    /// Lets the next message open another connection. Messages that are under way on this one stay there.
    pub fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Whether the next message opens another connection.
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Relaxed)
    }
}

impl<L> Deref for Live<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.inner
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(10);

    async fn name_of_silence(live: &Live<()>) -> &'static str {
        let outcome = live.confirm(WITHIN, pending::<Result<(), ()>>()).await;
        outcome.expect_err("there is no answer").name()
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_left_and_no_attempt_counts() {
        let live = Live::new(());
        live.confirm(WITHIN, ready(Ok::<_, ()>(()))).await.expect("an answer").expect("a confirm");
        assert!(!live.is_left());
        assert_eq!(name_of_silence(&live).await, "given_back", "only an earlier message is confirmed");
        assert!(live.is_left());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_others_overtake_has_failed() {
        let live = Live::new(());
        let later = async {
            tokio::time::sleep(WITHIN / 2).await;
            live.confirm(WITHIN, ready(Ok::<_, ()>(()))).await
        };
        let (name, _) = tokio::join!(name_of_silence(&live), later);
        assert_eq!((name, live.is_left()), ("failed", false));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_no_confirm() {
        let live = Live::new(());
        let later = async { live.confirm(WITHIN, ready(Err::<(), _>("lost"))).await };
        let (name, _) = tokio::join!(name_of_silence(&live), later);
        assert_eq!((name, live.is_left()), ("given_back", true));
    }
}
