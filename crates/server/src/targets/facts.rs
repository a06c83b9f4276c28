//! [`TargetFacts`]: what there is to say about the target of a queue when one of its tasks waits.

use tickwheel_api::{AttemptBody, TargetOrder, TargetRow, TargetState};
use tickwheel_push::{Attempts, Hand};
use tickwheel_queue::{Key, QueueName, TargetRecord, TaskView};

use super::made;
use super::outside::Outside;
use super::shown;
use super::stored::Stored;

/// The target of a queue, and the last attempt to send it a task.
pub(crate) struct TargetFacts {
    /// The target as lists show it.
    pub(crate) row: TargetRow,
    /// Whether the server has started the target. It starts all targets as soon as it can read them.
    pub(crate) is_started: bool,
    /// Whether the server can read the target in the store.
    pub(crate) is_readable: bool,
    /// Whether the server can send to the target. If not, it lacks something, such as a key, or the settings are wrong.
    pub(crate) is_usable: bool,
    /// Whether the target itself asked for the wait until its next try.
    pub(crate) is_silence_asked: bool,
    /// The largest number of messages that are under way at one time now.
    pub(crate) limit: u64,
    /// The limit when the target has not failed lately.
    pub(crate) concurrency: u64,
    /// The order of the messages.
    pub(crate) order: TargetOrder,
    /// The last attempt for a task with the key of the question.
    pub(crate) last_attempt: Option<AttemptBody>,
    /// The task of the question, if the server has it in hand.
    pub(crate) hand: Option<HandFacts>,
    /// Another task that the server has in hand, behind which the task of the question waits in the order of the target.
    pub(crate) head: Option<HandFacts>,
}

/// A task that the server has in hand.
pub(crate) struct HandFacts {
    /// The key of the task.
    pub(crate) key: Key,
    /// The number of its present attempt, as the receiver is told it, see [`Hand`].
    pub(crate) attempt: u32,
    /// The state of the task.
    pub(crate) state: HandState,
    /// The attempt with this number, if it has ended and is remembered.
    pub(crate) ended: Option<AttemptBody>,
}

/// The state of a task in hand. Instants are milliseconds since 1970.
pub(crate) enum HandState {
    /// No attempt has begun. The end of the task before it in its order is not durable yet.
    New,
    /// An attempt is under way.
    Sending {
        /// When the attempt began.
        since_ms: i64,
        /// The end of the target's time-out.
        until_ms: i64,
    },
    /// The last attempt failed.
    Failed {
        /// When the next attempt is due; the present instant if that was before.
        next_ms: i64,
    },
}

impl TargetFacts {
    /// `running`: the state of the target; `None`: it is not started. `task`: the task of the question; `None`: the task of this key is done.
    /// `now_ms`: the time (ms since 1970).
    pub(super) fn of(
        outside: &Outside,
        queue: &QueueName,
        record: &TargetRecord,
        running: Option<&tickwheel_push::TargetView>,
        key: &Key,
        task: Option<&TaskView>,
        now_ms: i64,
    ) -> Self {
        let stored = Stored::read(record).ok();
        let row = shown::row(queue, record, stored.as_ref(), running, now_ms);
        let is_readable = stored.is_some();
        // To make a target costs little, and is needed for a disabled one only.
        let is_usable = row.state != TargetState::Disabled
            || stored.as_ref().is_some_and(|stored| made::target(outside, queue, stored).is_ok());
        let concurrency = stored.as_ref().map_or(0, |stored| made::plan(&stored.target).concurrency as u64);
        let order = stored.and_then(|stored| stored.target.order).unwrap_or(TargetOrder::None);
        let hand_of = |hand| running.map(|running| HandFacts::of(hand, &running.attempts, now_ms));
        let hands = task.zip(running.map(|running| &running.hands));
        let hand = hands.and_then(|(task, hands)| hands.task(task.id)).and_then(hand_of);
        let head = hands.and_then(|(task, hands)| {
            hands.head_of(task.extra.group.as_ref()).filter(|head| head.id != task.id).and_then(hand_of)
        });
        let last_attempt = running.and_then(|running| running.attempts.last_of(key));
        Self {
            row,
            is_started: running.is_some(),
            is_readable,
            is_usable,
            is_silence_asked: running.is_some_and(|running| running.is_silence_asked),
            limit: running.map_or(0, |running| running.limit as u64),
            concurrency,
            order,
            last_attempt: last_attempt.as_ref().map(shown::attempt),
            hand,
            head,
        }
    }
}

impl HandFacts {
    fn of(hand: Hand, attempts: &Attempts, now_ms: i64) -> Self {
        let Hand { id, key, attempt, state } = hand;
        let state = shown::hand_state(state, now_ms);
        let ended = attempts.last_of(&key).filter(|last| (last.id, last.attempt) == (id, attempt));
        Self { key, attempt, state, ended: ended.as_ref().map(shown::attempt) }
    }
}
