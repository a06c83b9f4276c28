//! [`ShardId`]: names one shard of a data set. The id of a task tells the task's shard.

use core::fmt;

/// A data set has at most this many shards.
pub const SHARDS_MAX: u32 = 1_024;

/// A shard of a data set: its number, and the number of shards. The number of shards never changes.
///
/// The id of a task, divided by the number of shards, leaves the number of the task's shard as the remainder. So an id names its shard. A
/// lease token names the shard too, because the token carries the id. With one shard, an id may be any number from 1.
///
/// ```
/// use tickwheel_engine::ShardId;
///
/// let shard = ShardId::new(49, 64).expect("0 to 63 are there");
/// assert_eq!(shard.first_id(1), 49);
/// assert_eq!(shard.id_after(49), 113);
/// assert_eq!(ShardId::of_id(113, 64), Some(shard));
/// ```
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ShardId {
    number: u32,
    count: u32,
}

impl ShardId {
    /// The only shard of a data set that has one shard.
    pub const ONLY: Self = Self { number: 0, count: 1 };

    /// Returns shard `number` (from 0) of `count` shards. Returns `None` if `number` is not below `count`, or if `count` is above
    /// [`SHARDS_MAX`].
    #[must_use]
    pub const fn new(number: u32, count: u32) -> Option<Self> {
        if number < count && count <= SHARDS_MAX { Some(Self { number, count }) } else { None }
    }

    /// Returns the shard to which `id` belongs in a data set of `count` shards. Returns `None` if `count` is 0 or above [`SHARDS_MAX`].
    #[must_use]
    pub fn of_id(id: u64, count: u32) -> Option<Self> {
        let number = id.checked_rem(u64::from(count))?;
        Self::new(u32::try_from(number).ok()?, count)
    }

    /// Returns the shard's number, from 0.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Returns how many shards the data set has.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// Whether `id` belongs to this shard.
    #[must_use]
    pub fn has_id(self, id: u64) -> bool {
        Self::of_id(id, self.count) == Some(self)
    }

    /// Returns the shard's lowest id that is at least `least`.
    #[must_use]
    pub fn first_id(self, least: u64) -> u64 {
        let (number, count) = (u64::from(self.number), u64::from(self.count));
        let above = (least % count + count - number) % count;
        if above == 0 { least } else { least + count - above }
    }

    /// Returns the shard's next id after `id`, which must belong to the shard.
    #[must_use]
    pub fn id_after(self, id: u64) -> u64 {
        id + u64::from(self.count)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} of {}", self.number, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_all_shards_are_all_numbers_and_each_is_of_one() {
        for count in [1, 2, 3, 64, SHARDS_MAX] {
            for number in 0..count {
                let shard = ShardId::new(number, count).expect("it is one");
                for least in [0, 1, 5, 63, 64, 65, 1 << 52] {
                    let id = shard.first_id(least);
                    assert!(id >= least && id - least < u64::from(count), "{shard}: {id} after {least}");
                    assert!(shard.has_id(id) && shard.has_id(shard.id_after(id)));
                    let others = (least..least + u64::from(count)).filter(|&id| shard.has_id(id));
                    assert_eq!(others.collect::<Vec<_>>(), [id]);
                }
            }
        }
        assert_eq!(ShardId::ONLY.first_id(1), 1);
        assert_eq!(ShardId::ONLY.id_after(1), 2);
    }

    #[test]
    fn a_shard_beyond_the_count_is_none() {
        assert_eq!(ShardId::new(3, 3), None);
        assert_eq!(ShardId::new(0, 0), None);
        assert_eq!(ShardId::new(0, SHARDS_MAX + 1), None);
        assert_eq!(ShardId::of_id(7, 0), None);
    }
}
