//! The inputs and the effects of an engine.

use crate::calls::{Answer, Command};
use crate::name::QueueName;
use crate::schedule::{AskId, InstantFound, InstantWanted};
use crate::seam::{Reply, Request, RequestId};
use crate::time::Timestamp;
use crate::token::Token;

/// Names one call of a caller until its answer. The driver gives rising numbers.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// Everything that can happen to the engine.
#[derive(Clone, Debug)]
pub enum Input {
    /// A caller asks for something.
    Call {
        /// The call.
        call: CallId,
        /// The command of the caller.
        command: Command,
    },
    /// A waiting lease has waited long enough, or its caller is gone. If the call is not waiting, nothing happens.
    EndWait {
        /// The call.
        call: CallId,
    },
    /// These deliveries did not reach their callers: the tasks are ready again and the attempt does not count.
    Undelivered {
        /// The tokens of the deliveries.
        tokens: Vec<Token>,
    },
    /// A client uses this queue. The queue exists, with or without tasks, until each `Use` is followed by a `Leave`.
    Use {
        /// The queue.
        queue: QueueName,
    },
    /// A client that used this queue does so no longer.
    Leave {
        /// The queue.
        queue: QueueName,
    },
    /// The store answered.
    Store {
        /// The request it answers.
        request: RequestId,
        /// The answer of the store.
        reply: Reply,
    },
    /// The answer to a question for an instant.
    Instant {
        /// The question.
        ask: AskId,
        /// The answer.
        found: InstantFound,
    },
    /// The store failed by itself, in its background work. The engine ignores this while a commit is in flight: the reply to the commit
    /// comes first.
    StoreFailed {
        /// The cause, as the store says it.
        why: String,
    },
    /// Time has passed. Every input lets time pass; this one does nothing else.
    Wake,
    /// Ask the store for its free bytes, if growth is refused or soon would be: see [`Engine::room_pace`](crate::Engine::room_pace).
    /// Otherwise nothing happens.
    LookForRoom,
    /// Write the time down with the next commit, whether or not anything changed.
    NoteTime,
    /// Take no more calls, end the waits, write the leases down. [`Effect::Stopped`] follows.
    Stop,
}

/// Everything that the engine wants done.
#[expect(
    clippy::large_enum_variant,
    reason = "an answer is made once and moved on; a box would be an allocation for each call"
)]
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ask the store.
    Request {
        /// The id that comes back with the reply.
        id: RequestId,
        /// The request.
        request: Request,
    },
    /// Tell when a cron expression fires. The answer comes back as [`Input::Instant`]. It should come before the end of the turn: then its
    /// effects go into the same commit.
    Ask {
        /// The id that comes back with the answer.
        ask: AskId,
        /// The question.
        wanted: InstantWanted,
    },
    /// Answer a caller. All changes that the answer depends on are durable.
    Answer {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// All calls are answered and all is durable; the shard may be released.
    Stopped,
}

/// When the engine wants to be woken next: at the earlier of the two, each on its own clock.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct NextWake {
    /// By the wall clock: a task falls due, or tasks have to be loaded ahead.
    pub wall: Option<Timestamp>,
    /// By the monotonic clock, milliseconds: a lease runs out.
    pub mono_ms: Option<u64>,
}
