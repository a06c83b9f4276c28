//! [`TaskCursor`] and [`LeaseCursor`]: where a page of a list ended.

use core::cmp::Ordering;
use core::ops::Bound;

use crate::seam::DueKey;
use crate::task::LeaseNo;
use crate::time::{Seq, Timestamp};

/// Where a page of tasks ended. The next page begins behind this position.
///
/// The shards of a list follow one another in the order of their numbers, and the tasks of a shard in the order of (`due_at`, `put_seq`).
/// The `due_at` of a dead task is the instant at which the engine forgets the task; for a buried task, an instant that stands for "never".
///
/// ```
/// use tickwheel_engine::{Seq, TaskCursor, Timestamp};
///
/// let cursor = TaskCursor { shard: 0, due_at: Timestamp::MAX, put_seq: Seq(7) };
/// assert!(TaskCursor::START < cursor);
/// assert!(cursor < TaskCursor { shard: 1, ..TaskCursor::START });
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskCursor {
    /// The number of the shard.
    pub shard: u32,
    /// The `due_at` of the last task that the page looked at.
    pub due_at: Timestamp,
    /// The `put_seq` of the last task that the page looked at.
    pub put_seq: Seq,
}

impl TaskCursor {
    /// The position before all tasks.
    pub const START: Self = Self { shard: 0, due_at: Timestamp::EPOCH, put_seq: Seq::ZERO };

    /// Returns the position before the tasks of a shard that are due at `due_at` or later.
    #[must_use]
    pub const fn before(shard: u32, due_at: Timestamp) -> Self {
        Self { shard, due_at, put_seq: Seq::ZERO }
    }

    pub(crate) fn behind(shard: u32, DueKey { due_at, put_seq }: DueKey) -> Self {
        Self { shard, due_at, put_seq }
    }

    /// Returns the position in this shard behind which the next page begins. `None`: the list has passed the shard.
    pub(crate) fn place_in(self, shard: u32) -> Option<DueKey> {
        let Self { due_at, put_seq, .. } = self;
        match self.shard.cmp(&shard) {
            Ordering::Less => Some(DueKey::START),
            Ordering::Equal => Some(DueKey { due_at, put_seq }),
            Ordering::Greater => None,
        }
    }
}

/// Where a page of leases ended. The next page begins behind this position. The shards follow one another in the order of their numbers.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeaseCursor {
    /// The number of the shard.
    pub shard: u32,
    /// The number of the last lease that the page looked at.
    pub no: LeaseNo,
}

impl LeaseCursor {
    /// Returns the position before all leases of this shard.
    #[must_use]
    pub const fn start_of(shard: u32) -> Self {
        Self { shard, no: LeaseNo(0) }
    }

    /// Returns the lower bound of the lease numbers of this shard that the next page may have. `None`: the list has passed the shard.
    pub(crate) fn behind_in(self, shard: u32) -> Option<Bound<LeaseNo>> {
        match self.shard.cmp(&shard) {
            Ordering::Less => Some(Bound::Unbounded),
            Ordering::Equal => Some(Bound::Excluded(self.no)),
            Ordering::Greater => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_begins_at_the_start_of_later_shards_and_is_past_earlier_ones() {
        let place = DueKey { due_at: Timestamp::MAX, put_seq: Seq(3) };
        let cursor = TaskCursor::behind(4, place);
        assert_eq!([3, 4, 5].map(|shard| cursor.place_in(shard)), [None, Some(place), Some(DueKey::START)]);
    }
}
