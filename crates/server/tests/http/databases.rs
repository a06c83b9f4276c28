//! Moves the stores of a test run into PostgreSQL, so that the same tests show the same behaviour there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use tickwheel_server::{Config, PostgresPlan, Store};

use crate::postgres;

/// If the variable `TICKWHEEL_TEST_POSTGRES` is set, returns the configuration with a database in the place of the directory or the memory.
/// The same directory leads to the same database again.
pub(crate) fn moved(config: Config) -> Config {
    static DATABASES: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());
    if std::env::var_os("TICKWHEEL_TEST_POSTGRES").is_none() {
        return config;
    }
    let url = match &config.store {
        Store::Memory => database(),
        Store::Dir(path) => {
            let mut databases = DATABASES.lock().unwrap_or_else(PoisonError::into_inner);
            databases.entry(path.clone()).or_insert_with(database).clone()
        }
        Store::Postgres(_) => return config,
    };
    let store = Store::Postgres(PostgresPlan { url, node: "test".to_owned(), migrate: true });
    Config { store, ..config }
}

/// Makes a database and returns its URL.
fn database() -> String {
    let server = postgres::shared().expect("TICKWHEEL_TEST_POSTGRES needs PostgreSQL");
    server.database().url()
}
