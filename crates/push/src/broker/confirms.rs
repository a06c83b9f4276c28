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
    silent: Mutex<Silent>,
}

/// The task whose message got no answer last, and how often in a row.
#[derive(Default)]
struct Silent {
    id: u64,
    times: u32,
}

/// A task counts an attempt after this number of times without an answer in a row. While the breaker lets one message through at a time, it is
/// always that of the same task, and no later one could be confirmed.
const SILENT_TIMES_MAX: u32 = 10;

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
    confirms: &'l Confirms<L>,
    /// The id of the task.
    id: u64,
    live: &'l Live<L>,
    numbers: Arc<Numbers>,
    number: u64,
}

impl<L> Default for Confirms<L> {
    fn default() -> Self {
        let last = Mutex::new(Last { live: Weak::new(), numbers: Arc::default() });
        Self { last, silent: Mutex::default() }
    }
}

impl<L> Confirms<L> {
    /// Begins to send the message of the task with this id on this connection.
    pub(crate) fn send<'l>(&'l self, live: &'l Arc<Live<L>>, id: u64) -> Sent<'l, L> {
        // Each change is one step, so that a panic leaves nothing half done.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.live.as_ptr() != Arc::as_ptr(live) {
            *last = Last { live: Arc::downgrade(live), numbers: Arc::default() };
        }
        let numbers = Arc::clone(&last.numbers);
        let number = numbers.sent.fetch_add(1, Ordering::Relaxed) + 1;
        Sent { confirms: self, id, live, numbers, number }
    }

    /// Counts that the message of a task got no answer. Returns whether that was too often in a row.
    fn is_silent_too_often(&self, id: u64) -> bool {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        if silent.id != id {
            *silent = Silent { id, times: 0 };
        }
        silent.times += 1;
        let is_over = silent.times >= SILENT_TIMES_MAX;
        if is_over {
            *silent = Silent::default();
        }
        is_over
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
    /// - If the message of this task is the tenth of it in a row without an answer, it is a failure of the task.
    /// - Otherwise the way is silent: the broker or the place in it hangs, or the network between swallows packets. It is a failure of the target,
    ///   and the next message opens another connection. The breaker opens at once: the broker may have taken each message that it does not confirm,
    ///   so each one more may arrive twice.
    pub(crate) fn silence(&self, reason: &str) -> Outcome {
        if self.numbers.confirmed.load(Ordering::Relaxed) > self.number {
            return Outcome::task_failed(reason);
        }
        self.live.leave();
        if self.confirms.is_silent_too_often(self.id) {
            return Outcome::task_failed(format!("{reason}, {SILENT_TIMES_MAX} times in a row"));
        }
        let reason = format!("{reason}, and no later message is confirmed").into();
        Outcome::TargetFailed { reason, open_ms: Some(0), asked: false }
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
        confirmed(confirms.send(&live, 1)).await;
        assert!(!live.is_left());
        assert_eq!(
            silent(confirms.send(&live, 1)).await,
            "given_back",
            "only an earlier message is confirmed"
        );
        assert!(live.is_left());
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_is_never_answered_fails_so_that_others_come_before_it() {
        let confirms = Confirms::default();
        let connection = || Arc::new(Live::new(()));
        let mut outcomes = Vec::new();
        for _ in 0..12 {
            outcomes.push(silent(confirms.send(&connection(), 7)).await);
        }
        let mut expected = ["given_back"; 12];
        expected[9] = "failed";
        assert_eq!(outcomes, expected);
        for id in 0..30 {
            assert_eq!(silent(confirms.send(&connection(), id % 2)).await, "given_back", "not in a row");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_others_overtake_has_failed() {
        let (confirms, live) = (Confirms::default(), Arc::new(Live::new(())));
        let first = confirms.send(&live, 1);
        confirmed(confirms.send(&live, 1)).await;
        assert_eq!((silent(first).await, live.is_left()), ("failed", false));
    }

    #[tokio::test(start_paused = true)]
    async fn errors_other_targets_and_other_connections_confirm_nothing() {
        let (confirms, live) = (Confirms::default(), Arc::new(Live::new(())));
        let first = confirms.send(&live, 1);
        let lost = confirms.send(&live, 1).answer(WITHIN, ready(Err::<(), _>("lost"))).await;
        assert_eq!(lost.expect("an answer"), Err("lost"));
        confirmed(Confirms::default().send(&live, 1)).await;
        confirmed(confirms.send(&Arc::new(Live::new(())), 1)).await;
        assert_eq!((silent(first).await, live.is_left()), ("given_back", true));
    }
}
