//! [`Faults`]: how often which fault happens; and [`Wrong`]: statements that are wrong on purpose.

use crate::rng::Rng;

/// How often the database and the network fail. Each fault is drawn.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// The longest way of a request or an answer, and the longest wait of a commit for its standby (ns).
    pub lag_ns: u64,
    /// In a thousand ways: the way takes long.
    pub stall_permille: u64,
    /// The longest way of all (ns).
    pub stall_ns: u64,
    /// Percent of the answers that take 0.5 to 5 s, as those of a database that has too much to do.
    pub slow_percent: u64,
    /// The longest additional way of every other request to end another incarnation (ns). The incarnation may beat again meanwhile.
    pub late_end_ns: u64,
    /// In a thousand transactions: the answer is lost. The transaction took effect, or did not, or is still under way.
    pub lost_permille: u64,
    /// The longest time that a transaction goes on without its client (ns).
    pub orphan_ns: u64,
    /// In a thousand calls: the session dies before.
    pub die_permille: u64,
    /// In a thousand connects: it fails, and so do others for a time.
    pub connect_permille: u64,
    /// In a thousand transactions: it is refused, and so are others for a time.
    pub refuse_permille: u64,
    /// The longest time of a refusal or of an outage (ns).
    pub outage_ns: u64,
    /// Whether replication is asynchronous, so that a fail-over may lose commits that were acknowledged.
    pub asynchronous: bool,
}

const MS: u64 = 1_000_000;

impl Faults {
    /// Draws how often faults happen in a run. No answer is slow: a plan draws that later, so that the other choices of older seeds stay the same.
    #[must_use]
    pub fn draw(rng: &mut Rng) -> Self {
        Self {
            lag_ns: rng.pick(&[MS / 5, 2 * MS, 20 * MS]),
            stall_permille: rng.pick(&[0, 2, 10]),
            stall_ns: rng.pick(&[300, 3_000, 12_000]) * MS,
            slow_percent: 0,
            late_end_ns: rng.pick(&[0, 0, 200, 600]) * MS,
            lost_permille: rng.pick(&[0, 5, 20, 60]),
            orphan_ns: rng.pick(&[30, 900, 6_000, 40_000]) * MS,
            die_permille: rng.pick(&[0, 3, 20]),
            connect_permille: rng.pick(&[0, 20, 100]),
            refuse_permille: rng.pick(&[0, 2, 10]),
            outage_ns: rng.pick(&[50, 1_000, 4_000]) * MS,
            asynchronous: rng.chance(30),
        }
    }

    /// Draws how long an answer takes in addition (ns), if it is a slow one.
    pub(super) fn slow_ns(self, rng: &mut Rng) -> Option<u64> {
        (self.slow_percent > 0 && rng.chance(self.slow_percent)).then(|| rng.between(500, 5_000) * MS)
    }

    /// Returns a network without faults.
    #[must_use]
    pub fn calm(self) -> Self {
        Self { lag_ns: MS, asynchronous: self.asynchronous, ..Self::default() }
    }
}

/// A statement that is wrong on purpose: the simulator has to find it.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Wrong {
    /// All statements are right.
    #[default]
    Nothing,
    /// A commit does not compare the epoch.
    NoFence,
    /// A commit does not ask for the number before.
    NoNumberBefore,
    /// The outcome of a commit is read without a wait for the transaction that holds the shard.
    ResolveWithoutLock,
    /// A commit whose answer was lost is reported as done.
    UnknownIsDone,
    /// A commit that ended with `ROLLBACK` is reported as done.
    RollbackIsDone,
    /// An incarnation is ended although it beat since.
    EndWithoutBeat,
    /// A taking of a shard does not ask who has the other shards.
    TakeBesideOthers,
    /// The epoch grows by 1, and no number is raised, after the database may have lost batches.
    SmallStep,
    /// A read of the inbox begins behind the last row that the owner has read.
    InboxByCursor,
    /// A read of the inbox deletes the rows that it returns.
    RowDeletedAsRead,
}
