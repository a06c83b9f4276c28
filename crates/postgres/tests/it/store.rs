//! The store on a real PostgreSQL passes the conformance suite of the stores.

use tickwheel_postgres::{ClusterClock, Plan, PostgresOptions, PostgresStore};
use tickwheel_store::conformance::{self, Maker, Setup};
use tickwheel_store::{HistoryLimits, OpenStore};

use crate::kit::{Database, Server};

/// Opens the store of the only shard in a database.
fn open(database: &Database<'_>, setup: &Setup) -> PostgresStore {
    let plan = Plan { shards: Some(1), clock: ClusterClock::Real, lease_ms: 500, migrates: true };
    let history = HistoryLimits::last(setup.history_per_queue);
    let options = PostgresOptions { plan, history, ..PostgresOptions::new(database.url()) };
    let shard = options.connect().expect("the database takes the process").pop().expect("one shard");
    let opened = shard.with_acquired_page(setup.acquired_page).open(Box::new(|| {}));
    let Ok(opened) = opened;
    opened.store
}

/// Makes a database for each store.
struct Databases {
    server: &'static Server,
    made: Vec<Database<'static>>,
}

impl Maker for Databases {
    type Store = PostgresStore;

    fn create(&mut self, setup: &Setup) -> PostgresStore {
        let database = self.server.database();
        let store = open(&database, setup);
        let secret: String = setup.secret.iter().map(|byte| format!("{byte:02x}")).collect();
        database.psql(&format!("UPDATE tickwheel.shard SET secret = decode('{secret}', 'hex')"));
        self.made.push(database);
        store
    }

    fn reopen(&mut self, setup: &Setup, store: PostgresStore) -> PostgresStore {
        drop(store);
        open(self.made.last().expect("a store was made"), setup)
    }
}

#[test]
fn it_is_a_durable_store() {
    let Some(server) = crate::kit::shared() else { return };
    conformance::durable(&mut Databases { server, made: Vec::new() });
}
