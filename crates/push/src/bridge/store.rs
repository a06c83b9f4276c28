//! [`Store`]: where a bridge keeps messages until they are due.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tickwheel_queue::{Body, Cancel, CancelError, Key, Put, PutError, Queue, QueueName};

use super::request::Delayed;
use crate::amqp::CONTENT_TYPE_PACKED;

/// The pause before a call that found a task in the hands of a worker is made again.
const LEASED_PAUSE: Duration = Duration::from_millis(100);
/// The pause before a call that could not be carried out is made again.
const PAUSE: Duration = Duration::from_secs(1);

/// The answer of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kept {
    /// The change is durable.
    Done,
    /// The change will never be possible. The reason.
    Refused(String),
    /// The change is not possible now, or whether it was made is unknown.
    NotNow {
        /// The reason, for operators.
        reason: String,
        /// The time after which the call is made again.
        after: Duration,
    },
}

/// A call to a store, under way.
pub type Keeping<'a> = Pin<Box<dyn Future<Output = Kept> + Send + 'a>>;

/// The place where a bridge keeps messages until they are due: a queue in the same process, or one of a server.
///
/// The bridge makes the calls for one key one after the other. Calls for different keys, and those without a key, may be under way at one
/// time. A future that is dropped gives the call up; the change may be made nevertheless.
pub trait Store: Send + Sync + 'static {
    /// Keeps a message. A message with a key replaces the one of this key that is not due yet.
    fn put<'a>(&'a self, message: &'a Delayed) -> Keeping<'a>;

    /// Forgets the message of a key. If there is none, nothing is to be done.
    fn cancel<'a>(&'a self, key: &'a Key) -> Keeping<'a>;
}

/// Keeps messages in a queue of this process.
#[derive(Clone, Debug)]
pub struct QueueStore {
    queue: Queue,
    name: QueueName,
    payload_bytes_max: usize,
}

impl QueueStore {
    /// The largest message (bytes): 1 MiB, as a server takes them.
    pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

    /// Returns a store that keeps messages in the queue of this name.
    #[must_use]
    pub fn new(queue: &Queue, name: &QueueName) -> Self {
        Self { queue: queue.clone(), name: name.clone(), payload_bytes_max: Self::PAYLOAD_BYTES_MAX }
    }
}

impl Store for QueueStore {
    fn put<'a>(&'a self, message: &'a Delayed) -> Keeping<'a> {
        let Delayed { key, due, payload } = message;
        if payload.len() > self.payload_bytes_max {
            let reason = format!(
                "the packed message has {} bytes, more than {}",
                payload.len(),
                self.payload_bytes_max
            );
            return Box::pin(async { Kept::Refused(reason) });
        }
        let body = Body { content_type: CONTENT_TYPE_PACKED.into(), ..Body::bytes(payload.clone()) };
        let put = Put { key: key.clone(), due: *due, body, ..Put::without_key(&self.name) };
        // The call is made here, and the future waits for its answer.
        let stored = self.queue.put(put);
        Box::pin(async { put_answer(stored.await.map(|_| ())) })
    }

    fn cancel<'a>(&'a self, key: &'a Key) -> Keeping<'a> {
        let cancelled = self.queue.cancel(Cancel::new(&self.name, key.clone()));
        Box::pin(async { cancel_answer(cancelled.await.map(|_| ())) })
    }
}

fn put_answer(answer: Result<(), PutError>) -> Kept {
    let Err(error) = answer else { return Kept::Done };
    let reason = error.to_string();
    match error {
        PutError::Leased => Kept::NotNow { reason, after: LEASED_PAUSE },
        PutError::Draining | PutError::BacklogFull { .. } | PutError::Unavailable(_) => {
            Kept::NotNow { reason, after: PAUSE }
        }
        PutError::Live { .. }
        | PutError::NotFound
        | PutError::Done
        | PutError::WouldAdd
        | PutError::VersionMismatch { .. }
        | PutError::TooFar { .. }
        | PutError::NotRising { .. }
        | PutError::ExpiresFirst { .. } => Kept::Refused(reason),
    }
}

fn cancel_answer(answer: Result<(), CancelError>) -> Kept {
    match answer {
        // The message is not there, or was published already.
        Ok(()) | Err(CancelError::NotFound | CancelError::Done) => Kept::Done,
        Err(error @ CancelError::Leased) => Kept::NotNow { reason: error.to_string(), after: LEASED_PAUSE },
        Err(error @ CancelError::VersionMismatch { .. }) => Kept::Refused(error.to_string()),
        Err(error @ CancelError::Unavailable(_)) => Kept::NotNow { reason: error.to_string(), after: PAUSE },
    }
}
