//! The attempts to send messages to a target.

use crate::declare::query::{self, query};
use crate::declare::{body, choice, count, duration, has, instant, list, may, number, object, text};
use crate::values::limits::{LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX};

query! {
    /// The query of `GET /v1/queues/{q}/target/attempts`: `?limit=`.
    pub struct AttemptsQuery {
        /// Maximum number of attempts. Default: 100.
        limit: usize = LIST_LIMIT_DEFAULT, |name, given| query::number(name, given, 1..=LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT);
    }
}

body! {
    /// The last attempts to send messages to a target, the newest first.
    ///
    /// The answer to `GET /v1/queues/{q}/target/attempts`. The server keeps the last 1,000 of each target in memory.
    pub struct AttemptsBody: answer "Attempts" {
        /// The attempts.
        attempts: Vec<AttemptBody> = has(list(object(), ""));
    }
}

body! {
    /// One attempt to send a message.
    pub struct AttemptBody: answer "Attempt" {
        /// The key of the task.
        key: String = has(text(256, ""));
        /// The id of the task.
        id: u64 = has(count());
        /// The number of the attempt, from 1.
        attempt: u32 = has(number(1, 4_294_967_295));
        /// When the attempt began.
        at_ms as "at": i64 = has(instant());
        /// How long it took.
        took_ms as "took": u64 = has(duration());
        /// How it ended.
        outcome: AttemptOutcome = has(choice());
        /// The status of HTTP, if there was an answer.
        status: Option<u16> = may(number(100, 999));
        /// The reason of a failure.
        reason: Option<String> = may(text(1_000, ""));
        /// The first 256 bytes of the answer's body.
        answer: Option<String> = may(text(1_024, ""));
    }
}

choice! {
    /// How an attempt ended.
    pub enum AttemptOutcome {
        /// The other side confirmed.
        Acked = "acked",
        /// The task failed, and the attempt counts.
        Failed = "failed",
        /// The task is dead at once.
        Dead = "dead",
        /// The target failed: the task is given back, and the attempt does not count.
        GivenBack = "given_back",
        /// The settings of the operator block the address. The task is given back, and the attempt does not count.
        Blocked = "blocked",
    }
}

body! {
    /// The result of a test message.
    ///
    /// The answer to `POST /v1/queues/{q}/target/test`. Nothing is stored, and no count changes.
    pub struct TargetTestBody: answer "TargetTest" {
        /// How the attempt ended.
        outcome: AttemptOutcome = has(choice());
        /// How long it took.
        took_ms as "took": u64 = has(duration());
        /// The status of HTTP, if there was an answer.
        status: Option<u16> = may(number(100, 999));
        /// The reason of a failure.
        reason: Option<String> = may(text(1_000, ""));
        /// The first 256 bytes of the answer's body.
        answer: Option<String> = may(text(1_024, ""));
    }
}
