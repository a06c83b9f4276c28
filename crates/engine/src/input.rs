//! The inputs and the effects of an engine.

use std::sync::Arc;

use crate::calls::{Answer, Command};
use crate::name::QueueName;
use crate::schedule::{AskId, InstantFound, InstantWanted};
use crate::seam::{Reply, Request, RequestId};
use crate::time::Timestamp;
use crate::token::Token;

/// The number of one call of a caller, valid until the call is answered. A later call has a higher number, but calls need not reach the
/// engine in the order of their numbers.
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
    /// A lease call has waited long enough, or its caller is gone. If the call does not wait, the input changes nothing.
    EndWait {
        /// The call.
        call: CallId,
    },
    /// These deliveries did not reach their callers. The tasks whose leases still run are ready again, and the attempts do not count.
    Undelivered {
        /// The tokens of the deliveries.
        tokens: Vec<Token>,
    },
    /// A client begins to use this queue. The queue exists, with or without tasks, until each `Use` is followed by a `Leave`.
    Use {
        /// The queue.
        queue: QueueName,
    },
    /// A client stops using this queue.
    Leave {
        /// The queue.
        queue: QueueName,
    },
    /// The store replied to a request.
    Store {
        /// The request that the store replied to.
        request: RequestId,
        /// The reply of the store.
        reply: Reply,
    },
    /// The driver answers a question about an instant of a cron expression.
    Instant {
        /// The question.
        ask: AskId,
        /// The answer.
        found: InstantFound,
    },
    /// The rules of these time zones have changed. The next instants of the cron schedules in them are found anew. No local time that is
    /// decided comes again. None that is not decided is lost, unless the instant that it has now has a task already.
    ZonesChanged {
        /// The IANA names of the zones.
        zones: Arc<[Arc<str>]>,
    },
    /// The store failed by itself, in its background work. The engine ignores this input while a commit is in flight, because the reply to
    /// the commit says whether the commit is durable.
    StoreFailed {
        /// The cause, in the store's words.
        why: String,
    },
    /// Time has passed. Every input lets time pass, and this input does nothing else.
    Wake,
    /// The engine is to ask the store for its free bytes. The engine asks only while [`Engine::room_pace`](crate::Engine::room_pace) is not
    /// `None`.
    LookForRoom,
    /// The engine is to write the time to the store with the next commit, even if nothing has changed.
    NoteTime,
    /// The engine is to stop: it takes no more calls, ends the waits, and writes the running leases to the store. [`Effect::Stopped`]
    /// follows.
    Stop,
}

/// Everything that the engine wants to have done.
#[expect(
    clippy::large_enum_variant,
    reason = "an answer is made once and moved on; a box would be an allocation for each call"
)]
#[derive(Clone, Debug)]
pub enum Effect {
    /// Send a request to the store.
    Request {
        /// The id that comes back with the reply.
        id: RequestId,
        /// The request.
        request: Request,
    },
    /// Find an instant of a cron expression, and answer with [`Input::Instant`]. The answer should come before the end of the turn, so that
    /// its effects go into the same commit.
    Ask {
        /// The id that comes back with the answer.
        ask: AskId,
        /// The question.
        wanted: InstantWanted,
    },
    /// Answer a caller. All changes that the answer depends on are durable, or the answer tells that the outcome is unknown.
    Answer {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// All calls are answered, and all changes are durable or never will be. The driver may release the shard.
    Stopped,
}

/// When the engine wants to be woken next: at the earlier of two instants, each on its own clock.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct NextWake {
    /// By the wall clock: a task falls due or expires, tasks have to be loaded, a pause ends, or a schedule has an instant.
    pub wall: Option<Timestamp>,
    /// By the monotonic clock (ms): a lease runs out, or a rate admits the next delivery.
    pub mono_ms: Option<u64>,
}

impl NextWake {
    /// Returns the earlier instant of both on each clock.
    #[must_use]
    pub fn earlier(self, other: Self) -> Self {
        Self {
            wall: [self.wall, other.wall].into_iter().flatten().min(),
            mono_ms: [self.mono_ms, other.mono_ms].into_iter().flatten().min(),
        }
    }
}
