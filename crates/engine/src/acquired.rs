//! The pages that a new owner of a shard reads first.

use std::sync::Arc;

use crate::name::QueueName;
use crate::ownership::Ownership;
use crate::settings::{Rule, RuleName};
use crate::state::EngineState;
use crate::task::Task;
use crate::time::Timestamp;

/// The first thing a new owner is told.
#[derive(Clone, Debug)]
pub struct Acquired {
    /// The right to commit.
    pub ownership: Ownership,
    /// The latest wall instant in the records; [`Timestamp::EPOCH`] in a new shard.
    pub last_wall: Timestamp,
    /// The state that the last engine left.
    pub state: EngineState,
    /// 16 random bytes made with the shard: they sign lease tokens and key the hash tables.
    pub secret: [u8; 16],
    /// Bytes of growth that the store can take, as in [`Reply::Done`](crate::Reply::Done).
    pub room: u64,
    /// The first page.
    pub page: AcquiredPage,
}

/// One page of the facts that an owner needs before it can work: first the queues, then the rules, then the leased tasks, each in the order
/// of its names or ids.
///
/// A shard may have a million rules, and one answer with all of them would hold up everything else.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AcquiredPage {
    /// The queues that have tasks, each with the number of its tasks.
    pub queues: Vec<(QueueName, Population)>,
    /// The rules.
    pub rules: Vec<(RuleName, Arc<Rule>)>,
    /// Live tasks whose record has a lease that a stop wrote down. Workers have these tasks, whatever the clock shows.
    pub leased: Vec<Arc<Task>>,
    /// Where the next page begins; `None`: this is the last one.
    pub next: Option<AcquiredCursor>,
}

/// Where a page ended. The next one begins behind it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AcquiredCursor {
    /// At this queue.
    Queue(QueueName),
    /// At this rule; all queues came before.
    Rule(RuleName),
    /// At the leased task with this id; all queues and rules came before.
    Leased(u64),
}

/// How many tasks a queue has in the store.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Population {
    /// Tasks that are neither ended nor dead.
    pub live: u64,
    /// Tasks that were given up and are not forgotten yet.
    pub dead: u64,
}

#[cfg(test)]
impl Acquired {
    /// A shard that has just been made.
    pub(crate) fn of_new_shard() -> Self {
        use crate::shard::ShardId;
        use crate::time::{Epoch, Seq};
        Self {
            ownership: Ownership { shard: ShardId::ONLY, epoch: Epoch(1), last_seq: Seq::ZERO },
            secret: [0; 16],
            state: EngineState::default(),
            last_wall: Timestamp::EPOCH,
            room: 1 << 30,
            page: AcquiredPage::default(),
        }
    }
}
