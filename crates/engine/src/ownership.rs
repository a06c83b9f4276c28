//! [`Ownership`]: the right to commit to a shard.

use crate::shard::ShardId;
use crate::time::{Epoch, Seq};

/// The right to commit for a shard and to answer for it, and the last change that the store had when this right was given.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ownership {
    /// The shard that is owned.
    pub shard: ShardId,
    /// The number of this ownership. A store answers a commit of an older epoch with [`Reply::Fenced`](crate::Reply::Fenced).
    pub epoch: Epoch,
    /// The number of the last change in the store when the ownership began.
    pub last_seq: Seq,
}
