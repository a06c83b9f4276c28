//! [`Ownership`]: the right to commit for a shard and to answer for it.

use crate::shard::ShardId;
use crate::time::{Epoch, Seq};

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
