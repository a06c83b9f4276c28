//! The story of a task: what happened, what comes, and why it does not run yet.

use crate::declare::{body, choice, flag, has, instant, list, may, number, object, or_null, shown, text};
use crate::target::{AttemptBody, TargetRow};

choice! {
    /// The kind of an event in the story of a task.
    pub enum StoryWord {
        /// The owner put the task.
        Put = "put",
        /// The owner changed, moved, ran, released or redrove the task since it was put. The server does not keep when.
        Changed = "changed",
        /// Attempts failed of which the server keeps no more than their number, `attempt`.
        Earlier = "earlier",
        /// The worker nacked the task.
        Nacked = "nacked",
        /// The lease ran out.
        LeaseEnded = "lease_ended",
        /// The owner took the task from its worker.
        Revoked = "revoked",
        /// The worker buried the task.
        Buried = "buried",
        /// The connection of the worker closed.
        WorkerGone = "worker_gone",
        /// The target of the queue will never take the task.
        Undeliverable = "undeliverable",
        /// An instant of the timeline; among the events, one whose work is done.
        Moment = "moment",
        /// The task is due.
        Due = "due",
        /// A worker leased the task.
        Leased = "leased",
        /// The lease ends, unless the worker extends it.
        LeaseEnds = "lease_ends",
        /// The task expires, unless a worker has it then.
        Expires = "expires",
        /// The task was given up.
        Dead = "dead",
        /// A worker acked the task.
        Done = "done",
    }
}

body! {
    /// One thing that happens to a task.
    pub struct StoryEvent: answer "StoryEvent" {
        /// When; `null` if the server does not keep it.
        at_ms as "at": Option<i64> = shown(None, or_null(instant()));
        /// The kind of the event.
        what: StoryWord = has(choice());
        /// The number of the attempt; of `earlier`, how many there were.
        attempt: Option<u32> = may(number(0, u32::MAX.into()));
        /// The reason that the worker gave, or why the task was given up.
        reason: Option<String> = may(text(1_024, "text"));
        /// The name of the worker.
        by: Option<String> = may(text(crate::values::limits::WORKER_BYTES_MAX, "mailer-1"));
    }
}

body! {
    /// The story of a task, made from what the server keeps of it.
    ///
    /// The answer to `GET /v1/queues/{q}/tasks/{key}/story`.
    pub struct StoryBody: answer "Story" {
        /// The events since the task was put, in the order of time.
        events: Vec<StoryEvent> = has(list(object(), ""));
        /// The events to come if the task stays as it is, in the order of time.
        next: Vec<StoryEvent> = has(list(object(), ""));
        /// Why the task does not run now, in a few sentences for people.
        why: String = has(text(4_096, "The task is due at 2030-01-01T00:00:00.000Z, in 1h."));
        /// The target of the queue, if it has one. The server itself then delivers the task.
        target: Option<TargetRow> = may(object());
        /// The last attempt to send the task to the target, if the server has made one since its start and still keeps it.
        last_attempt: Option<AttemptBody> = may(object());
        /// Whether the events are all that happened. If not, the server does not keep all of it.
        complete: bool = has(flag());
    }
}
