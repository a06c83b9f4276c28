//! A task as its owner sees it.

use std::sync::Arc;

use crate::name::{Key, QueueName};
use crate::task::{Body, Extra, Task};
use crate::time::{Seq, Timestamp};

/// Where a live task stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Not due yet. Time moves it to ready; its owner may cancel it.
    Scheduled,
    /// Due, and no worker has it. A lease moves it on; its owner may cancel it.
    Ready,
    /// In a worker's hands. Ack ends it; expiry and nack without delay make it ready, nack with delay scheduled.
    Leased,
    /// Given up. Its owner may redrive or cancel it; time forgets it.
    Dead,
}

/// A live task as its owner sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskView {
    /// The server's number.
    pub id: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// The ETag: changes exactly when the owner changes the task.
    pub version: Seq,
    /// The put that made or replaced it.
    pub put_seq: Seq,
    /// Where it stands.
    pub state: State,
    /// When it is, or was, due.
    pub due_at: Timestamp,
    /// When its put was received; of a row of debounced puts, the first.
    pub put_at: Timestamp,
    /// When its lease ends, if a worker has the task.
    pub leased_until: Option<Timestamp>,
    /// When that lease began, if it began after the engine's start.
    pub leased_since: Option<Timestamp>,
    /// The name of its worker, if the worker gave one since the engine's start.
    pub leased_by: Option<Arc<str>>,
    /// How many tasks of the group workers have. Only in the answer to a get, for a ready task of a queue that limits its groups.
    pub group_in_flight: Option<u64>,
    /// Smaller goes first.
    pub priority: u32,
    /// Leases begun so far; 0: never leased.
    pub attempt: u32,
    /// Its group, retries, expiry and other members that most tasks do not have, and its events so far.
    pub extra: Extra,
    /// Payload, content type, tags, timeline.
    pub body: Arc<Body>,
}

impl TaskView {
    pub(crate) fn new(task: &Task, state: State) -> Self {
        let begun = if state == State::Leased { task.attempts.saturating_add(1) } else { task.attempts };
        Self {
            id: task.id,
            queue: task.queue.clone(),
            key: task.key.clone(),
            version: task.version,
            put_seq: task.put_seq,
            state,
            due_at: task.dead().map_or(task.due_at, |dead| dead.due_at),
            put_at: task.put_at,
            leased_until: None,
            leased_since: None,
            leased_by: None,
            group_in_flight: None,
            priority: task.priority,
            attempt: begun,
            extra: task.extra().clone(),
            body: Arc::clone(&task.body),
        }
    }

    /// Which instant of its timeline it is due at, from 0.
    #[must_use]
    pub fn step(&self) -> usize {
        self.extra.step as usize
    }
}
