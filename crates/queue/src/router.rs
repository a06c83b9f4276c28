//! [`Router`]: tells the shard of a data set that has a queue, a task or a lease.

use sha2::{Digest, Sha256};
use tickwheel_engine::{QueueName, SHARDS_MAX, ShardId, Token};

/// Tells the shard that a call concerns. All of a queue is in one shard, so the order, the limits and the counts of the queue are exact.
///
/// The shard of a queue is the first 4 bytes of the SHA-256 of the queue's name, as a big-endian number, modulo the number of shards. This
/// rule never changes: otherwise the tasks of earlier versions would not be found. SQL can compute the shard, too: for 64 shards it is
/// `('x' || encode(substr(sha256(convert_to(name, 'UTF8')), 1, 4), 'hex'))::bit(32)::int8 % 64`.
///
/// ```
/// use tickwheel_queue::{QueueName, Router};
///
/// let router = Router::new(64).expect("at most 1,024");
/// assert_eq!(router.of_queue(&QueueName::new("mail")?).number(), 49);
/// assert_eq!(router.of_id(113).number(), 49);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Router {
    shards: u32,
}

impl Router {
    /// The router of a data set with one shard, such as a directory.
    pub const ONE: Self = Self { shards: 1 };

    /// Returns the router of a data set with `shards` shards; `None` unless `shards` is between 1 and [`SHARDS_MAX`].
    #[must_use]
    pub fn new(shards: u32) -> Option<Self> {
        (1..=SHARDS_MAX).contains(&shards).then_some(Self { shards })
    }

    /// Returns the shard that has this queue. Cost: one SHA-256 of the name, or nothing if there is one shard.
    #[must_use]
    pub fn of_queue(self, queue: &QueueName) -> ShardId {
        self.of_name(queue.as_str())
    }

    fn of_name(self, name: &str) -> ShardId {
        if self.shards == 1 {
            return ShardId::ONLY;
        }
        let [a, b, c, d, ..] = Sha256::digest(name)[..] else { unreachable!("it has 32 bytes") };
        self.shard(u32::from_be_bytes([a, b, c, d]) % self.shards)
    }

    /// Returns how many shards the data set has.
    #[must_use]
    pub fn shards(self) -> u32 {
        self.shards
    }

    /// Returns the shard that keeps the jobs: the one that would have a queue of the name `$jobs`.
    #[must_use]
    pub fn of_jobs(self) -> ShardId {
        self.of_name("$jobs")
    }

    /// Computes the shard to which this id belongs. No task is looked up, so the id may belong to no task.
    #[must_use]
    pub fn of_id(self, id: u64) -> ShardId {
        ShardId::of_id(id, self.shards).expect("a router has 1 to 1,024 shards")
    }

    /// Computes the shard to which the task id in this token belongs. The token is not checked.
    #[must_use]
    pub fn of_token(self, token: Token) -> ShardId {
        self.of_id(token.task_id())
    }

    /// Returns all shards, in the order of their numbers.
    pub fn all(self) -> impl Iterator<Item = ShardId> {
        (0..self.shards).map(move |number| self.shard(number))
    }

    fn shard(self, number: u32) -> ShardId {
        ShardId::new(number, self.shards).expect("a router has 1 to 1,024 shards")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of queues, each with the number of its shard among 1, 3, 64 and 1,024 shards. Another program computed the numbers. The
    /// numbers never change, because the tests of other implementations of the rule may use them.
    const VECTORS: [(&str, [u32; 4]); 6] = [
        ("mail", [0, 2, 49, 1_009]),
        ("close", [0, 0, 0, 512]),
        ("shop/close", [0, 0, 45, 1_005]),
        ("$jobs", [0, 1, 26, 90]),
        ("q", [0, 0, 13, 717]),
        ("orders.eu-west-1", [0, 2, 8, 712]),
    ];

    #[test]
    fn a_queue_is_in_the_shard_that_its_name_says() {
        for (name, numbers) in VECTORS {
            let name = QueueName::new(name).expect("a name");
            let found = [1, 3, 64, SHARDS_MAX].map(|shards| {
                let router = Router::new(shards).expect("it is one");
                router.of_queue(&name).number()
            });
            assert_eq!(found, numbers, "{name}");
        }
        let longest = QueueName::new(&"a".repeat(200)).expect("a name");
        assert_eq!(Router::new(64).expect("it is one").of_queue(&longest).number(), 25);
    }

    #[test]
    fn shards_are_all_of_the_router_and_no_router_has_none() {
        let router = Router::new(3).expect("it is one");
        let numbers: Vec<u32> = router.all().map(ShardId::number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!((Router::new(0), Router::new(SHARDS_MAX + 1)), (None, None));
    }
}
