//! [`SampleMessage`]: the bytes of a message as a target sends them, so that a bare client sends the same.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tickwheel_push::Message;
use tickwheel_push::broker::Content;
use tickwheel_queue::{Body, Key, Lease, Put, Queue, QueueName, Timestamp};

/// The payload of each task has this many bytes.
pub(super) const PAYLOAD_BYTES: usize = 150;
pub(super) const CONTENT_TYPE: &str = "application/json";

/// The name of the queue.
pub(super) fn queue_name() -> QueueName {
    QueueName::new("bench").expect("the name is allowed")
}

/// Returns the key of a task.
pub(super) fn key(n: u64) -> String {
    format!("order:{n}")
}

/// Returns a task; `None`: due at once.
pub(super) fn task(n: u64, due_at: Option<Timestamp>) -> Put {
    let payload = format!("{:<PAYLOAD_BYTES$}", format!("{{\"order\":{n},\"shop\":\"eu\"}}"));
    let body = Body { content_type: CONTENT_TYPE.into(), ..Body::bytes(payload.as_bytes()) };
    let put = Put { body, ..Put::new(&queue_name(), Key::new(&key(n)).expect("the key is allowed")) };
    due_at.map_or(put.clone(), |due_at| put.at(due_at))
}

/// The message of one task, and its headers as brokers get them.
#[derive(Clone, Debug)]
pub(super) struct SampleMessage {
    pub(super) message: Message,
    pub(super) headers: Vec<(String, String)>,
}

impl SampleMessage {
    pub(super) fn new() -> anyhow::Result<Self> {
        let queue = Queue::options().open_memory()?;
        // The number has as many digits as most of those that are sent.
        queue.put(task(10_000, None)).wait()?;
        let lease = Lease::new(&queue_name());
        let leased = queue.lease(lease, Duration::ZERO).wait()?.pop().context("lease the task")?;
        let message = Message {
            leased: Arc::new(leased),
            attempt: 1,
            is_last: false,
            sent_at: queue.now(),
            instance: queue.instance(),
        };
        queue.close();
        let headers = Content::default().headers(&message);
        let headers = headers.map_err(|outcome| anyhow::anyhow!("no headers: {outcome:?}"))?;
        Ok(Self { message, headers })
    }

    /// Returns an id of its own for each number, as long as that of a task.
    pub(super) fn id(&self, n: u64) -> String {
        format!("tw_{:08x}_{n}", self.message.instance)
    }

    pub(super) fn payload(&self) -> &[u8] {
        self.message.payload().0
    }

    /// Returns the headers with the id of this number.
    pub(super) fn headers(&self, n: u64) -> impl Iterator<Item = (String, String)> {
        self.headers.iter().map(move |(name, value)| {
            let value = if name == "tickwheel-id" { self.id(n) } else { value.clone() };
            (name.clone(), value)
        })
    }
}
