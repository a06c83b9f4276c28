//! [`Load`]: the tasks, the same for each implementation.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use tickwheel_queue::{Key, Put, QueueName, Timestamp};

use crate::random::Random;

/// The payload of each task has this many bytes. It is a JSON object, because a table of jobs takes nothing else.
pub(crate) const PAYLOAD_BYTES: usize = 200;
const DAY_MS: u64 = 86_400_000;
/// Far tasks are due within these days from now.
const FAR_DAYS: u64 = 30;

/// Tasks in batches, the same number for each queue.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) queues: Vec<QueueName>,
    /// Tasks in a batch.
    pub(crate) batch: u64,
    /// Batches of each queue.
    pub(crate) batches: u64,
    /// Whether the tasks are due at once. The others are due within days.
    pub(crate) is_due: bool,
    /// The time at which the load was made (ms).
    now: u64,
}

/// One task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) key: String,
    pub(crate) due_at: i64,
    pub(crate) payload: String,
}

impl Load {
    /// Returns a load with about this many tasks, at least one batch for each queue.
    pub(crate) fn new(tasks: u64, batch: u64, queues: u64, is_due: bool) -> anyhow::Result<Self> {
        let names = (0..queues).map(|n| QueueName::new(&format!("shop/bench-{n}")));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).context("read the clock")?;
        Ok(Self {
            queues: names.collect::<Result<_, _>>()?,
            batch,
            batches: (tasks / (batch * queues)).max(1),
            is_due,
            now: u64::try_from(now.as_millis())?,
        })
    }

    /// Returns the same load with queues of other names.
    pub(crate) fn with_names(self, queues: Vec<QueueName>) -> Self {
        Self { queues, ..self }
    }

    /// Returns the number of all tasks.
    pub(crate) fn tasks(&self) -> u64 {
        self.queues.len() as u64 * self.batches * self.batch
    }

    /// Returns a batch of a queue. Batches from [`batches`](Self::batches) on are for the time before the measurement.
    pub(crate) fn of(&self, queue: usize, batch: u64) -> Vec<Task> {
        let first = batch * self.batch;
        (first..first + self.batch).map(|n| self.task(queue, n)).collect()
    }

    /// Returns one task of a queue.
    pub(crate) fn task(&self, queue: usize, n: u64) -> Task {
        let mut random = Random::new((queue as u64) << 40 | n);
        let due_at = match self.is_due {
            true => self.now,
            false => self.now + DAY_MS + random.below(FAR_DAYS * DAY_MS),
        };
        let payload = format!("{{\"order\":{n},\"shop\":\"eu\",\"note\":\"");
        let payload = format!("{payload:x<width$}\"}}", width = PAYLOAD_BYTES - 2);
        Task { key: format!("order:{queue}:{n}"), due_at: due_at.cast_signed(), payload }
    }
}

impl Task {
    /// Returns the call that puts the task.
    pub(crate) fn put(self, queue: &QueueName) -> anyhow::Result<Put> {
        let due_at = Timestamp::from_ms(self.due_at).context("a due time before 1970")?;
        Ok(Put::new(queue, Key::new(&self.key)?).at(due_at).payload(self.payload))
    }

    /// Returns the call that puts the task without a key. It gets its id as its key.
    pub(crate) fn put_keyless(self, queue: &QueueName) -> anyhow::Result<Put> {
        let due_at = Timestamp::from_ms(self.due_at).context("a due time before 1970")?;
        Ok(Put::without_key(queue).at(due_at).payload(self.payload))
    }

    /// Returns the due time.
    pub(crate) fn due(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.due_at.cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tasks_are_told_apart_and_their_payloads_are_json() {
        let load = Load::new(100, 10, 3, false).expect("names");
        assert_eq!((load.batches, load.tasks()), (3, 90));
        let all = (0..3).flat_map(|queue| (0..=load.batches).map(move |batch| (queue, batch)));
        let tasks: Vec<Task> = all.flat_map(|(queue, batch)| load.of(queue, batch)).collect();
        let keys: std::collections::BTreeSet<&str> = tasks.iter().map(|task| task.key.as_str()).collect();
        assert_eq!((keys.len(), tasks.len()), (120, 120));
        for task in &tasks {
            assert_eq!(task.payload.len(), PAYLOAD_BYTES);
            let json: serde_json::Value = serde_json::from_str(&task.payload).expect("JSON");
            assert!(json.is_object());
            assert!(task.due_at.cast_unsigned() >= load.now + DAY_MS);
        }
        assert_eq!(Load::new(1, 10, 3, true).expect("names").tasks(), 30);
    }
}
