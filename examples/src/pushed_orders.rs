//! [`PushedOrders`]: orders that a queue pushes to a target, and their arrival on the other side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tickwheel_api::CONTENT_TYPE_JSON;
use tickwheel_push::{Push, Sink, Target};
use tickwheel_queue::{Body, Key, Put, Queue, QueueName, Timestamp};
use tokio::time::{sleep, timeout};

use crate::http_story::say;

/// The times after which the orders are due (ms).
const DELAYS_MS: [u64; 3] = [200, 400, 600];
/// An order that has not arrived after this time does not arrive. A target that fails tries again within it.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(20);
/// A target settles its messages within this time.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// A queue in memory whose orders go to a target.
pub struct PushedOrders {
    queue: Queue,
    name: QueueName,
    push: Push,
}

/// A message as the other side gets it.
pub struct Arrival {
    /// The id of the message, by which a consumer knows a message that it has seen.
    pub id: String,
    /// The payload of the task.
    pub payload: Vec<u8>,
}

impl PushedOrders {
    /// Opens the queue.
    ///
    /// # Errors
    /// The queue does not open.
    pub fn open() -> Result<Self> {
        let queue = Queue::options().open_memory().context("open the queue")?;
        let (push, _) = Push::new(&queue);
        Ok(Self { queue, name: QueueName::new("orders")?, push })
    }

    /// Returns a name for the topic, exchange, stream or tube that no other run of an example has.
    #[must_use]
    pub fn place(&self) -> String {
        format!("tickwheel-example-{:08x}", self.queue.instance())
    }

    /// Gives the queue its target, puts the orders, and tells how they arrive. `next` waits for the next message on the other side.
    ///
    /// # Errors
    /// An order arrives before its time, or not at all, or stays in the queue.
    pub async fn follow(
        self,
        sink: impl Sink + 'static,
        mut next: impl AsyncFnMut() -> Result<Arrival>,
    ) -> Result<()> {
        self.push.set(&self.name, Target::new(Arc::new(sink)));
        let due = self.put_orders().await?;
        let mut seen = BTreeSet::new();
        while seen.len() < due.len() {
            let Ok(arrival) = timeout(ARRIVAL_LIMIT, next()).await else { bail!(self.complaint()) };
            let Arrival { id, payload } = arrival?;
            let now = self.queue.now();
            let order = String::from_utf8(payload).context("a payload is no text")?;
            let due_at = *due.get(&order).with_context(|| format!("{order} is none of the orders"))?;
            let late_ms = now.as_ms() - due_at.as_ms();
            ensure!(late_ms >= 0, "{order} arrived {} ms before it was due", -late_ms);
            // A target sends a message again if it has not learned that the first one arrived. The id is the same.
            if seen.insert(id.clone()) {
                say(&format!("{order} arrived {late_ms} ms after it was due, with the id {id}"))?;
            } else {
                say(&format!("{order} arrived again, with the id {id}"))?;
            }
        }
        self.until_empty().await?;
        self.push.stop(STOP_LIMIT).await;
        say("the queue is empty")
    }

    /// Returns the payloads of the orders, and when each is due.
    async fn put_orders(&self) -> Result<BTreeMap<String, Timestamp>> {
        let mut due = BTreeMap::new();
        for (number, delay_ms) in (1..).zip(DELAYS_MS) {
            let order = format!(r#"{{"order":{number}}}"#);
            let put = Put::new(&self.name, Key::new(&format!("order:{number}"))?);
            let mut put = put.after(Duration::from_millis(delay_ms));
            put.body = Body { content_type: CONTENT_TYPE_JSON.into(), ..Body::bytes(order.clone()) };
            let stored = self.queue.put(put).await?;
            due.insert(order, stored.task.due_at);
        }
        Ok(due)
    }

    /// A task ends when the other side has confirmed its message, which may be a moment after the message arrived.
    async fn until_empty(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let counts = self.queue.queue(&self.name).await?.counts;
            let left = counts.scheduled + counts.ready + counts.leased + counts.dead;
            if left == 0 {
                return Ok(());
            }
            ensure!(begun.elapsed() < STOP_LIMIT, "{left} orders are left in the queue");
            sleep(Duration::from_millis(10)).await;
        }
    }

    fn complaint(&self) -> String {
        let view = self.push.view(&self.name);
        let reason = view.and_then(|view| view.reason).unwrap_or_else(|| "it has no failure".into());
        format!("no order arrived for {} s; the target says: {reason}", ARRIVAL_LIMIT.as_secs())
    }
}
