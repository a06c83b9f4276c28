//! Moves the stores of a test run into PostgreSQL, so that the same tests show the same behaviour there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tickwheel_postgres::{ClusterClock, Plan, PostgresOptions};
use tickwheel_queue::Queue;
use tickwheel_server::{Config, PostgresPlan, Store};

use crate::postgres;
use crate::served::shards;

static DATABASES: Mutex<BTreeMap<PathBuf, postgres::Database<'static>>> = Mutex::new(BTreeMap::new());

/// If the variable `TICKWHEEL_TEST_POSTGRES` is set, the stores of this run are in databases.
fn is_postgres() -> bool {
    std::env::var_os("TICKWHEEL_TEST_POSTGRES").is_some()
}

/// Returns true if the stores of this run are in databases, and says that the test is left out and why.
pub(crate) fn is_left_out(why: &str) -> bool {
    if is_postgres() {
        postgres::report(&format!("LEFT OUT on PostgreSQL: {why}"));
    }
    is_postgres()
}

/// The durability of a server that a test starts in memory.
pub(crate) fn durability() -> &'static str {
    if is_postgres() { "fsync" } else { "memory" }
}

/// Returns the configuration with a database in the place of the directory or the memory, if the stores of this run are in databases.
/// The same directory leads to the same database again.
pub(crate) fn moved(config: Config) -> Config {
    if !is_postgres() {
        return config;
    }
    let url = match &config.store {
        Store::Memory => database().url(),
        Store::Dir(path) => url_of(path),
        Store::Postgres(_) => return config,
    };
    let store = Store::Postgres(PostgresPlan { url, node: "test".to_owned(), migrate: true });
    Config { store, ..config }
}

/// Opens the data of a server that is not running, without a server.
pub(crate) fn opened(directory: &Path, clock: ClusterClock) -> Queue {
    let options = match clock {
        ClusterClock::Real => Queue::options(),
        ClusterClock::Virtual => Queue::options().virtual_clock(),
    };
    if !is_postgres() {
        return options.shards(shards()).open(directory).expect("opened");
    }
    let usual = PostgresOptions::new(url_of(directory));
    let plan = Plan { shards: Some(shards()), clock, ..usual.plan };
    options.open_shards(PostgresOptions { plan, ..usual }.connect().expect("connected")).expect("opened")
}

/// The bytes of the files in the directory, or of the rows in its place.
pub(crate) fn kept(directory: &Path) -> Vec<Vec<u8>> {
    if is_postgres() {
        let databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
        let text = databases[directory].psql("SELECT encode(record, 'escape') FROM tickwheel.rule");
        return vec![text.into_bytes()];
    }
    let mut kept = Vec::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let mut bytes = std::fs::read(entry.path()).expect("a file");
                    // A log file is filled with zeroes (16 MiB), which take a search long.
                    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
                    kept.push(bytes);
                }
            }
        }
    }
    kept
}

/// The URL of the database in the place of a directory.
fn url_of(directory: &Path) -> String {
    let mut databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
    databases.entry(directory.to_owned()).or_insert_with(database).url()
}

/// Makes a database.
fn database() -> postgres::Database<'static> {
    postgres::shared().expect("TICKWHEEL_TEST_POSTGRES needs PostgreSQL").database()
}
