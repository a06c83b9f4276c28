//! [`Plan`]: the options of one run, drawn from its seed.

use tickwheel_queue::{QueueName, Router};

use crate::database::Faults;
use crate::rng::Rng;

/// The options of one run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) nodes: usize,
    pub(super) shards: u32,
    pub(super) commit_workers: usize,
    pub(super) lease_ms: u32,
    /// The number of calls, and of faults of nodes and of the database, in the hostile part of the run.
    pub(super) calls: u64,
    pub(super) mishaps: u64,
    pub(super) clients: usize,
    pub(super) keys: u64,
    /// The longest time between two calls of a client (ns).
    pub(super) think_ns: u64,
    pub(super) faults: Faults,
    pub(super) steps_clock: bool,
    pub(super) page: usize,
    pub(super) rollup_batches: u64,
    /// How many keys of tasks the shards of a process may keep in memory.
    pub(super) known_keys: usize,
    pub(super) horizon_ms: u64,
    pub(super) near_bytes: u64,
    pub(super) scan_max: usize,
    pub(super) wall_ms: i64,
    /// The longest time between two rows of the inbox (ns); `None`: there are none.
    pub(super) row_think_ns: Option<u64>,
    /// Percent of the puts and moves that name a delay and no instant.
    pub(super) delay_percent: u64,
}

impl Plan {
    pub(super) fn draw(rng: &mut Rng) -> Self {
        let plan = Self::draw_first(rng);
        // From a generator of their own, so that the other choices of older seeds stay the same.
        let mut later = Rng::new(rng.clone().next_u64() ^ 0x736c_6f77_6572_0000);
        // A beat that takes longer than the lease ends it. With many such answers, no node would own a shard for long.
        let most = if plan.lease_ms < 5_000 { 2 } else { 20 };
        let slow_percent = later.pick(&[0, 0, most / 2, most]);
        Self { faults: Faults { slow_percent, ..plan.faults }, delay_percent: later.pick(&[0, 50]), ..plan }
    }

    fn draw_first(rng: &mut Rng) -> Self {
        let lease_ms = rng.pick(&[500, 1_000, 5_000]);
        let lease_ns = u64::from(lease_ms) * 1_000_000;
        Self {
            nodes: rng.pick(&[2, 2, 3]),
            shards: rng.pick(&[1, 1, 2, 3]),
            commit_workers: rng.pick(&[1, 1, 2]),
            lease_ms,
            calls: rng.between(60, 200),
            mishaps: rng.between(4, 9),
            clients: rng.pick(&[2, 4, 8]),
            keys: rng.pick(&[2, 4, 12]),
            think_ns: lease_ns / rng.pick(&[2, 10, 40]),
            faults: Faults::draw(rng),
            steps_clock: rng.chance(30),
            page: rng.pick(&[1, 3, 4_096]),
            rollup_batches: rng.pick(&[3, 20, 1_000]),
            known_keys: rng.pick(&[0, 3, 20, 2_000_000]),
            horizon_ms: rng.pick(&[2, 400, 10_000, 3_600_000]),
            near_bytes: rng.pick(&[512, 20_000, 1 << 20]),
            scan_max: rng.pick(&[1, 3, 1_024]),
            wall_ms: 1_500_000_000_000,
            row_think_ns: rng.pick(&[None, Some(2), Some(10), Some(40)]).map(|part| lease_ns / part),
            delay_percent: 0,
        }
    }

    /// Returns the queues of a shard.
    pub(super) fn queues(&self, shard: u32) -> Vec<String> {
        let router = Router::new(self.shards).expect("few shards");
        let is_there =
            |name: &String| QueueName::new(name).is_ok_and(|name| router.of_queue(&name).number() == shard);
        (0..100).map(|number| format!("q{number}")).find(is_there).into_iter().collect()
    }
}
