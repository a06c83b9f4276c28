//! What goes into the machine and what comes out.

use crate::calls::{Answer, Command};
use crate::name::QueueName;
use crate::schedule::{AskId, InstantFound, InstantWanted};
use crate::seam::{Reply, Request, RequestId};
use crate::time::Timestamp;
use crate::token::Token;

/// Names one call of a caller until its answer. The driver gives rising numbers.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub u64);

/// Everything that can happen to the machine.
#[derive(Clone, Debug)]
pub enum Input {
    /// A caller asks for something.
    Call {
        /// The call.
        call: CallId,
        /// What it asks.
        command: Command,
    },
    /// A waiting lease has waited long enough, or its caller is gone. A call that is not waiting: nothing happens.
    EndWait {
        /// The call.
        call: CallId,
    },
    /// These deliveries reached nobody: the tasks are ready again and the attempt does not count.
    Undelivered {
        /// The tokens of the deliveries.
        tokens: Vec<Token>,
    },
    /// Somebody uses this queue: it is there, whether or not it has tasks, until as many have left it.
    Use {
        /// The queue.
        queue: QueueName,
    },
    /// Somebody who used this queue does so no longer.
    Leave {
        /// The queue.
        queue: QueueName,
    },
    /// The store answered.
    Store {
        /// The request it answers.
        request: RequestId,
        /// Its answer.
        reply: Reply,
    },
    /// What there is to say of an instant that was asked for.
    Instant {
        /// The question.
        ask: AskId,
        /// The answer.
        found: InstantFound,
    },
    /// The store failed by itself, in its background work. Passed over while a commit is in flight: its reply comes first.
    StoreFailed {
        /// What failed.
        why: String,
    },
    /// Time has passed. Every input looks at the time; this one does nothing else.
    Wake,
    /// Ask the store how much room there is, if growth is refused or soon would be: see
    /// [`Engine::room_pace`](crate::Engine::room_pace). Otherwise nothing happens.
    LookForRoom,
    /// Write the time down with the next commit, whether or not anything changed.
    NoteTime,
    /// Take no more calls, end the waits, write the leases down. [`Effect::Stopped`] follows.
    Stop,
}

/// Everything the machine wants done.
#[expect(
    clippy::large_enum_variant,
    reason = "an answer is made once and moved on; a box would be an allocation for each call"
)]
#[derive(Clone, Debug)]
pub enum Effect {
    /// Ask the store.
    Request {
        /// Comes back with the reply.
        id: RequestId,
        /// What to ask.
        request: Request,
    },
    /// Tell when a cron expression fires. The answer comes back as [`Input::Instant`], and best before the end of the turn: what it says
    /// then goes into the same commit.
    Ask {
        /// Comes back with the answer.
        ask: AskId,
        /// What to tell.
        wanted: InstantWanted,
    },
    /// Answer a caller. Whatever the answer rests on is durable.
    Answer {
        /// The call.
        call: CallId,
        /// The answer.
        answer: Answer,
    },
    /// All calls are answered and all is durable; the shard may be released.
    Stopped,
}

/// When the machine wants to be woken next: at the earlier of the two, each on its own clock.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct NextWake {
    /// By the wall clock: a task falls due, or tasks have to be loaded ahead.
    pub wall: Option<Timestamp>,
    /// By the monotonic clock, milliseconds: a lease runs out.
    pub mono_ms: Option<u64>,
}
