//! The checks that every store has to pass, without faults and with faults.

use tickwheel_sim::database::{Faults, SimDatabase};
use tickwheel_store::conformance::{self, Maker, Setup};

use crate::postgres::pumped::Pumped;

/// Makes stores above a new database for each.
struct Stores {
    database: Option<SimDatabase>,
    seed: u64,
    faults: Faults,
    made: u64,
}

const CALM: Faults = Faults {
    lag_ns: 0,
    stall_permille: 0,
    stall_ns: 0,
    slow_percent: 0,
    late_end_ns: 0,
    lost_permille: 0,
    orphan_ns: 0,
    die_permille: 0,
    connect_permille: 0,
    refuse_permille: 0,
    outage_ns: 0,
    asynchronous: false,
};

impl Stores {
    fn new(seed: u64, faults: Faults) -> Self {
        Self { database: None, seed, faults, made: 0 }
    }

    fn node(&mut self, setup: &Setup) -> Pumped {
        self.made += 1;
        let database = self.database.as_ref().expect("it was made");
        let name = format!("node {}", self.made);
        Pumped::new(database, &name, setup.history_per_queue, setup.acquired_page, self.faults)
    }
}

impl Maker for Stores {
    type Store = Pumped;

    fn create(&mut self, setup: &Setup) -> Pumped {
        let database = SimDatabase::new(self.seed, 1, setup.secret, 1_500_000_000_000);
        self.database = Some(database);
        self.node(setup)
    }

    fn reopen(&mut self, setup: &Setup, store: Pumped) -> Pumped {
        drop(store);
        let mut store = self.node(setup);
        // The node before has not given the shard up, so it has to end first.
        store.pass(20_000);
        store
    }
}

#[test]
fn it_is_a_store() {
    conformance::durable(&mut Stores::new(1, CALM));
}

#[test]
fn it_is_a_store_whatever_answers_are_lost() {
    for seed in 0..200 {
        let faults = Faults {
            lag_ns: 2_000_000,
            lost_permille: 150,
            orphan_ns: 400_000_000,
            die_permille: 50,
            connect_permille: 50,
            refuse_permille: 50,
            outage_ns: 40_000_000,
            ..CALM
        };
        let mut stores = Stores::new(seed, faults);
        let passed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| conformance::durable(&mut stores)));
        assert!(passed.is_ok(), "the checks fail with seed {seed}");
    }
}
