//! Tasks in answers.

use crate::INTEGER_MAX;
use crate::bad_request::BadRequest;
use crate::body::{Meaning, Slots, body};
use crate::choice::choice;
use crate::kind::{Kind, choice, instant, key, list, number, object, or_null, text, word};
use crate::openapi::schema;
use crate::part::{has, may, may_some, members_of, shown, some_or, unless};
use crate::payload::{Null, PayloadBody, kept_payload};
use crate::retry::RetryBody;
use crate::terms::{GROUP_BYTES_MAX, PRIORITY_DEFAULT, TAG_BYTES_MAX};
use crate::timeline::MomentBody;
use crate::trace::TraceContext;

choice! {
    /// Where a live task stands.
    pub enum TaskState {
        /// Not due yet. Time makes it ready; its owner may cancel it.
        Scheduled = "scheduled",
        /// Due, and in nobody's hands. A worker leases it; its owner may cancel it.
        Ready = "ready",
        /// In a worker's hands. The worker acks, nacks or loses it; its owner may revoke it.
        Leased = "leased",
        /// Given up. Its owner may redrive or cancel it; time forgets it.
        Dead = "dead",
    }
}

body! {
    /// A task as its owner sees it.
    ///
    /// The answer to GET, and a line of a list. Reading it back needs `serde_json`, which keeps the payload's bytes.
    pub struct TaskBody: answer "Task" {
        /// The queue.
        queue: String = has(text(200, "close"));
        /// The user's name for the task.
        key: String = has(key("order:1"));
        /// The server's number for it.
        id: u64 = has(number(1, INTEGER_MAX));
        /// Grows with every change by the owner; the ETag.
        version: u64 = has(number(1, INTEGER_MAX));
        /// Where it stands.
        state: TaskState = has(choice());
        /// When it is or was due.
        due_at_ms as "due_at": i64 = has(instant());
        /// What the worker gets.
        payload: PayloadBody = some_or(Null { is_written: true }, kept_payload());
        /// Words to find it by.
        tags: Vec<String> = shown(Vec::new(), tags());
        /// Smaller goes first.
        priority: u32 = has(number(0, u32::MAX.into()));
        /// The group it is in.
        group: Option<String> = may(word(GROUP_BYTES_MAX, "user:7"));
        /// Leases begun so far.
        attempt: u32 = has(number(0, u32::MAX.into()));
        /// Its own policy.
        retry: Option<RetryBody> = may(object());
        /// When it is given up, unless a worker has it then.
        expire_at_ms as "expire_at": Option<i64> = may(instant());
        /// The attempts that failed last, ten at most, the oldest first.
        failures: Vec<FailureBody> = unless(Vec::new(), list(object(), ""));
        /// When and why it was given up.
        dead: Option<(i64, DeathReason)> = may_some(members_of());
        /// The instants to come.
        timeline: Vec<MomentBody> = unless(Vec::new(), list(object(), ""));
        /// What its put was traced by.
        trace: Option<TraceContext> = may_some(members_of());
    }
}

fn tags() -> impl Kind<Value = Vec<String>> {
    list(word(TAG_BYTES_MAX, "vip"), "write a list of strings")
}

body! {
    /// When and why a task was given up.
    pub(crate) struct DeathMembers: group {
        /// When it was given up.
        dead_at: Option<i64> = may(instant());
        /// Why it was given up.
        reason: Option<DeathReason> = may(choice());
    }
}

impl Meaning for (i64, DeathReason) {
    type Members = DeathMembers;

    fn of_members(
        members: DeathMembers,
        _: Option<Self>,
        _: Slots<'_, '_>,
    ) -> Result<Option<Self>, BadRequest> {
        Ok(members.dead_at.zip(members.reason))
    }

    fn to_members(&self) -> DeathMembers {
        DeathMembers { dead_at: Some(self.0), reason: Some(self.1) }
    }
}

body! {
    /// An attempt that failed.
    pub struct FailureBody: answer "Failure" {
        /// When it ended.
        at_ms as "at": i64 = has(instant());
        /// Which, from 1.
        attempt: u32 = shown(0, number(0, u32::MAX.into()).described(|| schema::integer(1, u32::MAX.into())));
        /// How it ended.
        how: FailureKind = has(choice());
        /// What its worker said.
        reason: Option<String> = may(text(1_024, "text"));
    }
}

choice! {
    /// How an attempt failed.
    pub enum FailureKind {
        /// Its worker gave it back.
        Nacked = "nacked",
        /// Its lease ran out.
        LeaseEnded = "lease_ended",
        /// Its owner took it back.
        Revoked = "revoked",
        /// Its worker gave the task up.
        Buried = "buried",
        /// Its worker went away: its connection closed.
        WorkerGone = "worker_gone",
    }
}

choice! {
    /// Why a task was given up.
    pub enum DeathReason {
        /// It had failed as often as its retry policy allows.
        MaxAttempts = "max_attempts",
        /// Nobody had finished it by its `expire_at`.
        Expired = "expired",
        /// A worker gave it up. It is not forgotten.
        Buried = "buried",
    }
}

body! {
    /// The task after a change, without its payload.
    ///
    /// The answer to PUT, POST and PATCH.
    pub struct PutAnswer: answer "Stored" {
        /// The queue.
        queue: String = has(text(200, "close"));
        /// The user's name for the task.
        ///
        /// Or the server's if the request gave none.
        key: String = has(key("order:1"));
        /// The server's number for it.
        id: u64 = has(number(1, INTEGER_MAX));
        /// Grows with every change by the owner; the ETag.
        version: u64 = has(number(1, INTEGER_MAX));
        /// Where it stands.
        state: TaskState = has(choice());
        /// When it is or was due.
        due_at_ms as "due_at": i64 = has(instant());
        /// Words to find it by.
        tags: Vec<String> = shown(Vec::new(), tags());
        /// Smaller goes first.
        priority: u32 = has(number(0, u32::MAX.into()));
        /// The group it is in.
        group: Option<String> = may(word(GROUP_BYTES_MAX, "user:7"));
        /// Leases begun so far.
        attempt: u32 = has(number(0, u32::MAX.into()));
    }
}

body! {
    /// A task in a worker's hands.
    pub struct LeasedTask: answer "LeasedTask" {
        /// The user's name for the task.
        key: String = has(key("order:1"));
        /// The server's number for it.
        id: u64 = has(number(1, INTEGER_MAX));
        /// What to work on.
        payload: PayloadBody = some_or(Null { is_written: true }, kept_payload());
        /// Words to find it by.
        tags: Vec<String> = shown(Vec::new(), tags());
        /// Smaller goes first.
        priority: u32 = shown(PRIORITY_DEFAULT, number(0, u32::MAX.into()));
        /// The group it is in.
        group: Option<String> = may(word(GROUP_BYTES_MAX, "user:7"));
        /// When it was due.
        due_at_ms as "due_at": i64 = has(instant());
        /// 1 at the first lease.
        attempt: u32 = has(number(1, u32::MAX.into()));
        /// Proves the lease to ack, nack and extend.
        token: String = has(text(64, ""));
        /// When the lease ends: not earlier than this, unless the server crashes or its clock is set.
        lease_until_ms as "lease_until": i64 = has(instant());
        /// What its put was traced by.
        trace: Option<TraceContext> = may_some(members_of());
    }
}

body! {
    /// What is now this worker's.
    ///
    /// The tasks stand in the order in which they became this worker's.
    pub struct LeasedTasks: answer "LeasedTasks" {
        /// Empty if none was ready in time.
        tasks: Vec<LeasedTask> = has(list(object(), ""));
    }
}

body! {
    /// One page of a list. It may be empty and still have a next one.
    pub struct TasksPage: answer "TasksPage" {
        /// In the order of `due_at`.
        tasks: Vec<TaskBody> = has(list(object(), ""));
        /// What to send as `cursor` for the next page; `null` on the last.
        next_cursor: Option<String> = has(or_null(text(512, "")));
    }
}
