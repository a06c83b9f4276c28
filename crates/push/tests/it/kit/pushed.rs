//! [`Pushed`]: a queue whose tasks go to a sink.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_push::dispatch::{BreakerPlan, Plan};
use tickwheel_push::{Push, Sink, Target, TargetView};
use tickwheel_queue::{Death, Get, Key, Put, Queue, QueueName, Retry, TaskView};

use super::until_or;

/// A queue in memory with the name `close`, and its target. A task is dead after three attempts.
pub(crate) struct Pushed {
    pub(crate) queue: Queue,
    pub(crate) name: QueueName,
    pub(crate) push: Push,
}

impl Pushed {
    /// Gives a queue this target. The breaker opens after five failures, for 20 ms to 40 ms.
    pub(crate) fn start(sink: impl Sink + 'static) -> Self {
        let queue = Queue::options().open_memory().expect("a queue");
        let name = QueueName::new("close").expect("a name");
        let (push, _) = Push::new(&queue);
        let breaker = BreakerPlan { failures: 5, open_ms: 20, open_max_ms: 40 };
        let plan = Plan { concurrency: 32, timeout_ms: 10_000, breaker, ..Plan::default() };
        push.set(&name, Target { plan, ..Target::new(Arc::new(sink)) });
        Self { queue, name, push }
    }

    /// Adds a task with this key and the payload `{"a":1}`.
    pub(crate) fn put(&self, key: &str) {
        self.put_payload(key, br#"{"a":1}"#.to_vec());
    }

    /// Adds a task with this key and payload.
    pub(crate) fn put_payload(&self, key: &str, payload: Vec<u8>) {
        let mut put = Put::new(&self.name, Key::new(key).expect("a key")).payload(payload);
        put.terms.retry = Some(Retry { max_attempts: Some(3), backoff: None });
        self.queue.put(put).wait().expect("a put");
    }

    /// Adds a task with the key `order:N` for each number.
    pub(crate) fn put_many(&self, numbers: Range<usize>) {
        for n in numbers {
            self.put(&format!("order:{n}"));
        }
    }

    /// Returns a task that is neither acked nor removed.
    pub(crate) fn task(&self, key: &str) -> Option<TaskView> {
        let key = Key::new(key).expect("a key");
        self.queue.get(Get { queue: self.name.clone(), key }).wait().ok()
    }

    /// Returns whether none of the tasks with the keys `order:N` is left.
    pub(crate) fn are_gone(&self, mut numbers: Range<usize>) -> bool {
        numbers.all(|n| self.task(&format!("order:{n}")).is_none())
    }

    /// Returns why a task is dead.
    pub(crate) fn death(&self, key: &str) -> Option<Death> {
        self.task(key)?.extra.dead.map(|dead| dead.why)
    }

    /// Returns the id of the messages of the first task.
    pub(crate) fn first_id(&self) -> String {
        format!("tw_{:08x}_1", self.queue.instance())
    }

    /// Waits until a condition holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        until_or(|| format!("never {what}: {:?}", self.view()), || holds(self)).await;
    }

    /// Returns the target as others see it.
    pub(crate) fn view(&self) -> TargetView {
        self.push.view(&self.name).expect("a target")
    }

    /// Returns the number of attempts with this outcome.
    pub(crate) fn count(&self, outcome: &str) -> u64 {
        let view = self.view();
        view.figures.outcomes().find(|(name, _)| *name == outcome).expect("an outcome").1
    }

    /// Returns the reasons of all attempts that failed, the newest first.
    pub(crate) fn reasons(&self) -> Vec<Arc<str>> {
        self.view().attempts.newest(1_000).into_iter().filter_map(|attempt| attempt.reason).collect()
    }

    /// Returns the reason of the newest attempt that failed.
    pub(crate) fn last_reason(&self) -> String {
        let attempts = self.view().attempts.newest(1_000);
        attempts.into_iter().find_map(|attempt| attempt.reason).expect("a failure").to_string()
    }

    /// Checks that no attempt counted against a task: each message said that it is the first.
    pub(crate) fn assert_no_attempt_is_used_up(&self) {
        let attempts = self.view().attempts.newest(1_000);
        let is_bad = |outcome| outcome == "failed" || outcome == "dead";
        let bad: Vec<_> = attempts.iter().filter(|attempt| is_bad(attempt.outcome)).collect();
        assert!(bad.is_empty() && self.count("failed") + self.count("dead") == 0, "{bad:?}");
        assert!(attempts.iter().all(|attempt| attempt.attempt == 1), "{attempts:?}");
    }
}
