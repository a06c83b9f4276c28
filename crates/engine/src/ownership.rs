//! [`Ownership`]: the right to commit to a shard.

use crate::shard::ShardId;
use crate::time::{Epoch, Seq};

/// The right to commit to a shard, and the state in which the shard was left.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ownership {
    /// Which shard.
    pub shard: ShardId,
    /// The number of this ownership. Commits of an older one are [`Reply::Fenced`](crate::Reply::Fenced).
    pub epoch: Epoch,
    /// The last change in the store.
    pub last_seq: Seq,
}
