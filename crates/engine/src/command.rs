//! What a caller asks of the machine.

use crate::name::{Key, QueueName};
use crate::task::Body;
use crate::time::{Seq, Timestamp};
use crate::token::Token;

/// One request of a caller. The answer to each is the [`Answer`](crate::Answer) variant of the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Schedule a task.
    Put(Put),
    /// Look at a task.
    Get(Get),
    /// Reschedule a task or change its body.
    Patch(Patch),
    /// End a task that no worker has finished.
    Cancel(Cancel),
    /// Take ready tasks to work on.
    Lease(Lease),
    /// The work of these leases is done.
    Ack(Ack),
    /// Give these leases back.
    Nack(Nack),
    /// Keep these leases for longer.
    Extend(Extend),
    /// Page through the tasks of a queue.
    List(List),
    /// Count the tasks of every queue.
    Queues,
    /// The machine's own figures.
    Stats,
}

/// When a task is due.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Due {
    /// At once.
    #[default]
    Now,
    /// So many milliseconds after the put is received.
    After {
        /// The delay, milliseconds.
        ms: u64,
    },
    /// At this instant, kept exactly. In the past: at once.
    At(Timestamp),
}

/// What a put does about a live task of the same key.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum PutMode {
    /// Replace it, or make a new one.
    #[default]
    Upsert,
    /// Refuse: there must be none.
    Create,
    /// There must be one.
    Replace,
}

/// What to do about a task that is in a worker's hands.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum OnLease {
    /// Leave it there and say so.
    #[default]
    Refuse,
    /// Take it back: the token of that lease answers `revoked` from then on.
    Revoke,
}

/// Schedules a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Put {
    /// The queue. It appears on first use.
    pub queue: QueueName,
    /// The user's name for the task; `None`: the server's id in decimal.
    pub key: Option<Key>,
    /// When.
    pub due: Due,
    /// What the worker gets.
    pub body: Body,
    /// What to do about a live task of that key.
    pub mode: PutMode,
    /// Only if the live task has this version.
    pub if_version: Option<Seq>,
    /// What to do if that task is leased.
    pub on_lease: OnLease,
}

/// Looks at a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Get {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
}

/// Changes a live task and keeps what is not named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patch {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// A new instant.
    pub due: Option<Due>,
    /// A new body.
    pub body: Option<Body>,
    /// Only if the task has this version.
    pub if_version: Option<Seq>,
    /// What to do if it is leased.
    pub on_lease: OnLease,
}

/// Ends a task that no worker has finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cancel {
    /// The queue.
    pub queue: QueueName,
    /// The key.
    pub key: Key,
    /// Only if the task has this version.
    pub if_version: Option<Seq>,
    /// What to do if it is leased.
    pub on_lease: OnLease,
}

/// Takes ready tasks to work on, in the order of priority, `due_at`, and the seq of their put.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The queue.
    pub queue: QueueName,
    /// At most so many.
    pub max: usize,
    /// For how long, milliseconds.
    pub lease_ms: u64,
    /// Whether to wait if nothing is ready. The driver ends the wait with `Input::EndWait`.
    pub wait: bool,
}

/// Ends tasks: their work is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The queue they were leased from.
    pub queue: QueueName,
    /// The leases.
    pub tokens: Vec<Token>,
}

/// Gives leases back. The attempt counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nack {
    /// The queue they were leased from.
    pub queue: QueueName,
    /// The leases.
    pub tokens: Vec<Token>,
    /// Due again after so many milliseconds; `None`: ready at once, in the old place.
    pub delay_ms: Option<u64>,
}

/// Keeps leases for longer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extend {
    /// The queue they were leased from.
    pub queue: QueueName,
    /// The leases.
    pub tokens: Vec<Token>,
    /// They end so many milliseconds from now.
    pub lease_ms: u64,
}

/// Pages through the live tasks of a queue in the order of `due_at`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct List {
    /// The queue.
    pub queue: QueueName,
    /// Only tasks in this state.
    pub state: Option<crate::answer::State>,
    /// Looks at no more than so many tasks; a page may hold fewer, even none, and still have a next one.
    pub max: usize,
    /// Where the page before ended.
    pub after: Option<crate::seam::Place>,
}
