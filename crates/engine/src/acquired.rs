//! The contents of a shard that its new owner reads first, page by page.

use std::sync::Arc;

use crate::name::QueueName;
use crate::settings::{Rule, RuleName};
use crate::shard::ShardId;
use crate::state::EngineState;
use crate::task::Task;
use crate::time::{Epoch, Seq, Timestamp};

/// The first answer of a store to a new owner of a shard.
#[derive(Clone, Debug)]
pub struct Acquired {
    /// The right of the new owner to commit and to answer.
    pub ownership: Ownership,
    /// The latest wall clock instant that the store noted before this owner; [`Timestamp::EPOCH`] in a new shard.
    pub last_wall: Timestamp,
    /// The engine state that the store has: the state of the previous owner, or the default in a new shard.
    pub state: EngineState,
    /// 16 random bytes, made together with the shard. They are the key of the signatures of lease tokens and of the hash tables.
    pub secret: [u8; 16],
    /// The bytes by which the data of the store may still grow, as in [`Reply::Done`](crate::Reply::Done).
    pub room: u64,
    /// The first page of the facts that the owner needs.
    pub page: AcquiredPage,
}

/// One page of the facts that an owner needs before it can work: first the queues, then the rules, then the leased tasks. Queues and rules
/// are in the order of their names, leased tasks in the order of their ids.
///
/// A shard may have a million queues. One reply with all of them would delay all other requests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AcquiredPage {
    /// Queues that have live or dead tasks, with the numbers of their tasks.
    pub queues: Vec<(QueueName, Population)>,
    /// Rules: the records of queues, schedules and jobs.
    pub rules: Vec<(RuleName, Arc<Rule>)>,
    /// Live tasks that have a lease in their record, because a graceful stop wrote the lease down. The engine lets a lease go on if the
    /// epoch just before wrote it, even if the clock now shows a time before the task is due.
    pub leased: Vec<Arc<Task>>,
    /// The cursor behind which the next page begins; `None`: this is the last page.
    pub next: Option<AcquiredCursor>,
}

/// The last entry of a page. The next page begins behind this entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AcquiredCursor {
    /// The page ended with this queue.
    Queue(QueueName),
    /// The page ended with this rule. All queues came before.
    Rule(RuleName),
    /// The page ended with the leased task of this id. All queues and rules came before.
    Leased(u64),
}

/// How many tasks a queue has in the store.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Population {
    /// The number of tasks that are neither ended nor dead.
    pub live: u64,
    /// The number of dead tasks.
    pub dead: u64,
}

/// The right to commit for a shard and to answer for it, and the last change that the store had when this right was given.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ownership {
    /// The shard that is owned.
    pub shard: ShardId,
    /// The number of this ownership. Once a later ownership has begun, a store answers a commit of this epoch with
    /// [`Reply::Fenced`](crate::Reply::Fenced).
    pub epoch: Epoch,
    /// The number of the last change in the store when the ownership began.
    pub last_seq: Seq,
}

#[cfg(test)]
impl Acquired {
    /// Returns the answer for a shard that has just been made.
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
