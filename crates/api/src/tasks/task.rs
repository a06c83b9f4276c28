//! Tasks in answers.

use crate::declare::{
    ValueCodec, body, choice, count, flag, has, instant, key, list, may, members_of, number, object,
    or_left_out, or_made, or_null, schema, shown, text, unless, word,
};
use crate::text::portable::INTEGER_MAX;
use crate::values::limits::{GROUP_BYTES_MAX, PRIORITY_DEFAULT, TAG_BYTES_MAX};
use crate::values::payload::{PayloadBody, kept_payload};
use crate::values::retry::RetryBody;
use crate::values::timeline::MomentBody;
use crate::values::trace::TraceContext;

choice! {
    /// The state of a task.
    pub enum TaskState {
        /// The task is not due yet. It becomes ready when it is due; its owner may cancel it.
        Scheduled = "scheduled",
        /// The task is due and not leased. A worker may lease it; its owner may cancel it.
        Ready = "ready",
        /// A worker has leased the task, and acks it, nacks it or lets the lease end. Its owner may revoke it.
        Leased = "leased",
        /// The task was given up. Its owner may redrive or cancel it; after a time the server removes it.
        Dead = "dead",
    }
}

body! {
    /// A task as its owner sees it.
    ///
    /// The answer to `GET`, and an element of a list. Only `serde_json` can read it, because that keeps the bytes of the payload.
    pub struct TaskBody: answer "Task" {
        /// The queue.
        queue: String = has(text(200, "close"));
        /// The key of the task.
        key: String = has(key("order:1"));
        /// The server's number for the task.
        id: u64 = has(number(1, INTEGER_MAX));
        /// The version, which grows with each change by the owner; also the `ETag`.
        version: u64 = has(number(1, INTEGER_MAX));
        /// The state of the task.
        state: TaskState = has(choice());
        /// When the task is due.
        due_at_ms as "due_at": i64 = has(instant());
        /// The payload that the worker gets; `None` if the request left payloads out.
        payload: Option<PayloadBody> = has(or_left_out(kept_payload()));
        /// Words to find the task by.
        tags: Vec<String> = shown(Vec::new(), tags());
        /// The priority; among ready tasks, the one with the smallest number goes first.
        priority: u32 = has(number(0, u32::MAX.into()));
        /// The group of the task.
        group: Option<String> = may(word(GROUP_BYTES_MAX, "user:7"));
        /// Number of leases so far.
        attempt: u32 = has(number(0, u32::MAX.into()));
        /// When the lease ends, if a worker has the task.
        lease_until_ms as "lease_until": Option<i64> = may(instant());
        /// The retry policy of the task, if it has one of its own.
        retry: Option<RetryBody> = may(object());
        /// When the task expires, unless a worker has it then.
        expire_at_ms as "expire_at": Option<i64> = may(instant());
        /// The last attempts that failed, at most ten, the oldest first.
        failures: Vec<FailureBody> = unless(Vec::new(), list(object(), ""));
        /// When and why the task was given up.
        dead: Option<DeathBody> = may(members_of());
        /// The instants of the timeline that are still to come.
        timeline: Vec<MomentBody> = unless(Vec::new(), list(object(), ""));
        /// The trace context of its put.
        trace: Option<TraceContext> = may(members_of());
    }
}

pub(crate) fn tags() -> impl ValueCodec<Value = Vec<String>> {
    list(word(TAG_BYTES_MAX, "vip"), "write a list of strings")
}

body! {
    /// When and why a task was given up.
    #[derive(Copy)]
    pub struct DeathBody: group {
        /// When the task was given up.
        at_ms as "dead_at": i64 = has(instant());
        /// Why the task was given up.
        reason: DeathReason = has(choice());
    }
}

body! {
    /// An attempt that failed.
    pub struct FailureBody: answer "Failure" {
        /// When the attempt ended.
        at_ms as "at": i64 = has(instant());
        /// The number of the attempt, from 1.
        attempt: u32 = shown(0, number(0, u32::MAX.into()).described(|| schema::integer(1, u32::MAX.into())));
        /// How the attempt ended.
        how: FailureKind = has(choice());
        /// The reason that the worker gave.
        reason: Option<String> = may(text(1_024, "text"));
    }
}

choice! {
    /// How an attempt failed.
    pub enum FailureKind {
        /// The worker nacked the task.
        Nacked = "nacked",
        /// The lease ran out.
        LeaseEnded = "lease_ended",
        /// The owner revoked the task.
        Revoked = "revoked",
        /// The worker buried the task.
        Buried = "buried",
        /// The connection of the worker closed.
        WorkerGone = "worker_gone",
        /// The target of the queue will never take the task.
        Undeliverable = "undeliverable",
    }
}

choice! {
    /// Why a task was given up.
    pub enum DeathReason {
        /// The task had failed as often as its retry policy allows.
        MaxAttempts = "max_attempts",
        /// No worker had acked the task by its `expire_at`.
        Expired = "expired",
        /// A worker buried the task. The server does not remove it after a time.
        Buried = "buried",
        /// The target of the queue refused the task for good.
        Refused = "refused",
        /// The template of the queue's target could not be filled with the values of the task.
        Template = "template",
        /// The payload was larger than the queue's target takes.
        TooLarge = "too_large",
    }
}

body! {
    /// The task after a change, without its payload.
    ///
    /// The answer to PUT, POST and PATCH.
    pub struct PutAnswer: answer "Stored" {
        /// The queue.
        queue: String = has(text(200, "close"));
        /// The key of the task, which the server chose if the request had none.
        key: String = has(key("order:1"));
        /// The server's number for the task.
        id: u64 = has(number(1, INTEGER_MAX));
        /// The version, which grows with each change by the owner; also the `ETag`.
        version: u64 = has(number(1, INTEGER_MAX));
        /// The state of the task.
        state: TaskState = has(choice());
        /// When the task is due.
        due_at_ms as "due_at": i64 = has(instant());
        /// Words to find the task by.
        tags: Vec<String> = shown(Vec::new(), tags());
        /// The priority; among ready tasks, the one with the smallest number goes first.
        priority: u32 = has(number(0, u32::MAX.into()));
        /// The group of the task.
        group: Option<String> = may(word(GROUP_BYTES_MAX, "user:7"));
        /// Number of leases so far.
        attempt: u32 = has(number(0, u32::MAX.into()));
    }
}

body! {
    /// A task that is leased to a worker.
    pub struct LeasedTask: answer "LeasedTask" {
        /// The key of the task.
        key: String = has(key("order:1"));
        /// The server's number for the task.
        id: u64 = has(number(1, INTEGER_MAX));
        /// The payload.
        payload: PayloadBody = or_made(PayloadBody::default, kept_payload());
        /// Words to find the task by.
        tags: Vec<String> = shown(Vec::new(), tags());
        /// The priority; among ready tasks, the one with the smallest number goes first.
        priority: u32 = shown(PRIORITY_DEFAULT, number(0, u32::MAX.into()));
        /// The group of the task.
        group: Option<String> = may(word(GROUP_BYTES_MAX, "user:7"));
        /// When the task was due.
        due_at_ms as "due_at": i64 = has(instant());
        /// The number of this lease; 1 for the first one.
        attempt: u32 = has(number(1, u32::MAX.into()));
        /// The proof of the lease, which ack, nack and extend take.
        token: String = has(text(64, ""));
        /// When the lease ends. It does not end earlier, unless the server crashes or its clock is set.
        lease_until_ms as "lease_until": i64 = has(instant());
        /// The trace context of its put.
        trace: Option<TraceContext> = may(members_of());
    }
}

body! {
    /// The tasks that are now leased to the worker.
    ///
    /// The tasks are in the order in which they were leased.
    pub struct LeasedTasks: answer "LeasedTasks" {
        /// The leased tasks; empty if none was ready in time.
        tasks: Vec<LeasedTask> = has(list(object(), ""));
    }
}

body! {
    /// One page of a list of tasks. A page ends after 0.2 s, so it may have few tasks or none and still a next page.
    pub struct TasksPage: answer "TasksPage" {
        /// The tasks in the order of `due_at`; dead tasks in the order of `dead_at`, those with the reason `buried` last.
        tasks: Vec<TaskBody> = has(list(object(), ""));
        /// The `cursor` of the next page; `null` on the last page.
        next_cursor: Option<String> = shown(None, or_null(text(512, "")));
        /// Number of tasks that were looked at for this page, if the filter has a text that is searched for.
        looked_at: Option<u64> = may(count());
    }
}

body! {
    /// The tasks of one key in all queues that the caller may see.
    pub struct TasksOfKey: answer "TasksOfKey" {
        /// The tasks, live or dead, in the order of the names of their queues.
        tasks: Vec<TaskBody> = has(list(object(), ""));
        /// Whether there may be more tasks: a call looks into 10,000 queues and shows 1,000 tasks, and looks no further after 16 MiB of payloads.
        truncated: bool = has(flag());
    }
}
