//! [`ServerStore`]: keeps the messages of a bridge on a server, over HTTP.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tickwheel_api::{CancelOutcome, Due, PayloadBody, ProblemKind, PutBody, PutQuery, RevokeQuery};
use tickwheel_client::{Client, ClientError, Outcome};
use tickwheel_push::amqp::CONTENT_TYPE_PACKED;
use tickwheel_push::bridge::{Delayed, Keeping, Kept, Store};
use tickwheel_queue::{Due as DueTime, Key, QueueName};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// At most this many calls are under way. The client keeps as many connections open.
const CALLS_MAX: usize = 64;
/// The pause before a call is made again that found a task in the hands of a worker.
const LEASED_PAUSE: Duration = Duration::from_millis(100);
/// The pause before a call is made again that could not be carried out, if the server names none.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, also if the server names a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Keeps messages in a queue of a server.
///
/// A call is made again until it has a final answer. If the answer of a call was lost, the call may have taken effect: a message with a key
/// makes the same task again, and one without a key may make a second task.
pub(crate) struct ServerStore {
    client: Client,
    queue: QueueName,
    calls: Semaphore,
    /// Puts without a key whose answer was lost.
    repeatable: AtomicU64,
}

impl ServerStore {
    pub(crate) fn new(client: &Client, queue: &QueueName) -> Self {
        Self {
            client: client.clone(),
            queue: queue.clone(),
            calls: Semaphore::new(CALLS_MAX),
            repeatable: AtomicU64::new(0),
        }
    }

    /// Returns the number of puts without a key whose answer was lost. Each may have made a second task.
    pub(crate) fn repeatable(&self) -> u64 {
        self.repeatable.load(Ordering::Relaxed)
    }
}

/// Returns the meaning of an answer.
fn kept(answer: Result<(), ClientError>) -> Kept {
    answer.map_or_else(|error| judged(&error), |()| Kept::Done)
}

impl Store for ServerStore {
    fn put<'a>(&'a self, message: &'a Delayed) -> Keeping<'a> {
        let asked = Instant::now();
        Box::pin(async move {
            let Delayed { key, due, payload } = message;
            let _call = self.calls.acquire().await.expect("it is never closed");
            let body = PutBody {
                due: due_after(*due, asked.elapsed()),
                payload: PayloadBody { bytes: payload.clone(), content_type: CONTENT_TYPE_PACKED.to_owned() },
                ..PutBody::default()
            };
            let queue = self.queue.as_str();
            let answer = match key {
                Some(key) => self.client.put(queue, key.as_str(), &body, PutQuery::default(), None).await,
                None => self.client.post(queue, &body).await,
            };
            if key.is_none() && answer.as_ref().is_err_and(|error| error.outcome() == Outcome::Unknown) {
                self.repeatable.fetch_add(1, Ordering::Relaxed);
            }
            kept(answer.map(drop))
        })
    }

    fn cancel<'a>(&'a self, key: &'a Key) -> Keeping<'a> {
        Box::pin(async move {
            let _call = self.calls.acquire().await.expect("it is never closed");
            let answer =
                self.client.cancel(self.queue.as_str(), key.as_str(), RevokeQuery::default(), None).await;
            match answer {
                Ok(CancelOutcome::Leased) => {
                    Kept::NotNow { reason: "a worker has the task".to_owned(), after: LEASED_PAUSE }
                }
                // Otherwise the message is cancelled, was not there, was published already, or was given up.
                answer => kept(answer.map(drop)),
            }
        })
    }
}

/// Returns the due time for a call that is made this long after it was asked for. The time is rounded down, so that no message is early.
fn due_after(due: DueTime, gone: Duration) -> Due {
    match due {
        DueTime::Now => Due::Now,
        DueTime::At(at) => Due::At(at.as_ms()),
        DueTime::After { ms } => {
            Due::After(ms.saturating_sub(u64::try_from(gone.as_millis()).unwrap_or(u64::MAX)))
        }
    }
}

/// Returns the meaning of a failed call. Only what the server can never take is refused: a wrong token, for example, is a mistake that an
/// operator corrects, while the messages wait.
fn judged(error: &ClientError) -> Kept {
    let reason = error.to_string();
    let ClientError::Problem(problem) = error else { return Kept::NotNow { reason, after: PAUSE } };
    match (problem.kind(), problem.status) {
        (Some(ProblemKind::Leased), _) => Kept::NotNow { reason, after: LEASED_PAUSE },
        (_, 400 | 413) => Kept::Refused(problem.detail.clone()),
        _ => {
            let named = problem.retry_after_s.map(|seconds| Duration::from_secs(seconds.into()));
            Kept::NotNow { reason, after: named.unwrap_or(PAUSE).clamp(LEASED_PAUSE * 2, PAUSE_MAX) }
        }
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_api::Problem;

    use super::*;

    fn judge(kind: ProblemKind) -> Kept {
        judged(&ClientError::Problem(Box::new(Problem::new(kind, "why"))))
    }

    #[test]
    fn only_what_can_never_be_taken_is_refused() {
        for kind in [ProblemKind::BadRequest, ProblemKind::BadName, ProblemKind::TooFar] {
            assert_eq!(judge(kind), Kept::Refused("why".to_owned()), "{kind:?}");
        }
        for kind in ProblemKind::ALL {
            let is_refused = matches!(judge(kind), Kept::Refused(_));
            assert_eq!(is_refused, [400, 413].contains(&kind.status()), "{kind:?}");
        }
        assert!(matches!(judge(ProblemKind::Leased), Kept::NotNow { after: LEASED_PAUSE, .. }));
        let lost = ClientError::BadAnswer { status: Some(502), what: "a proxy".to_owned() };
        assert!(matches!(judged(&lost), Kept::NotNow { after: PAUSE, .. }));
    }

    #[test]
    fn a_call_that_comes_late_asks_for_the_rest() {
        let due = |ms, gone| due_after(DueTime::After { ms }, Duration::from_micros(gone));
        assert_eq!(due(1_000, 999), Due::After(1_000));
        assert_eq!(due(1_000, 1_000), Due::After(999));
        assert_eq!(due(1_000, 5_000_000), Due::After(0));
    }
}
