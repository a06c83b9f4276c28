//! A task as its owner sees it.

use std::sync::Arc;

use crate::name::{Key, QueueName};
use crate::task::{Body, Extra, Task};
use crate::time::{Seq, Timestamp};

/// The state of a task that has not ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Not due yet. The task becomes ready when its due time comes. Its owner may cancel it.
    Scheduled,
    /// Due, and no worker has the task. A lease gives the task to a worker. Its owner may cancel it.
    Ready,
    /// A worker has the task. An ack ends the task, or its present instant if it has a timeline. After a nack or a lease end, the task is
    /// ready, scheduled or dead.
    Leased,
    /// The task was given up. Its owner may redrive or cancel it. The engine forgets the task after some time, unless a worker gave it up.
    Dead,
}

/// A live or dead task as its owner sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskView {
    /// The id of the task.
    pub id: u64,
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// The version of the task, which is its ETag. It changes when the owner changes the task, and when a dead task lives again.
    pub version: Seq,
    /// The change that made or last replaced the task.
    pub put_seq: Seq,
    /// The state of the task.
    pub state: State,
    /// When the task is due. For a dead task: when it was due.
    pub due_at: Timestamp,
    /// When the put of the task was received. After a row of debounced puts: when the first of them was received.
    pub put_at: Timestamp,
    /// When the lease of the task ends; `None`: no worker has the task.
    pub leased_until: Option<Timestamp>,
    /// When the lease of the task began; `None`: no worker has the task, or the lease began before the engine's start.
    pub leased_since: Option<Timestamp>,
    /// The name of the worker that has the task; `None`: no worker has the task, the worker gave no name, or the lease began before the
    /// engine's start.
    pub leased_by: Option<Arc<str>>,
    /// The number of tasks of the same group that workers have. Only in the answer to a get, for a ready task of a queue that limits its
    /// groups.
    pub group_in_flight: Option<u64>,
    /// The priority. Among ready tasks, the task with the smaller number goes first.
    pub priority: u32,
    /// The number of attempts, a running lease included; 0: none. A redrive, a replacing put, and the next instant of a timeline begin at
    /// 0 again.
    pub attempt: u32,
    /// The group, retries and expiry of the task, other members that most tasks do not have, and counts of its events so far.
    pub extra: Extra,
    /// The payload, content type, tags and timeline of the task.
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

    /// Returns the index of the timeline's instant at which the task is due, from 0; 0 without a timeline.
    #[must_use]
    pub fn step(&self) -> usize {
        self.extra.step as usize
    }
}
