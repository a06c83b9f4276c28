//! A process of Tickwheel inside of the test process. Several of them are several nodes for the database.

use std::collections::BTreeSet;
use std::time::Duration;

use tickwheel_postgres::{ClusterClock, Plan, PostgresOptions};
use tickwheel_queue::{Key, List, Put, Queue, QueueName};

/// The lease of the tests (ms), the shortest that the tables take.
pub(crate) const LEASE_MS: u32 = 500;

/// The options of a process with one shard and a short lease.
pub(crate) fn options(url: &str, name: &str) -> PostgresOptions {
    let plan = Plan { shards: Some(1), clock: ClusterClock::Real, lease_ms: LEASE_MS, migrates: true };
    PostgresOptions { plan, name: name.to_owned(), ..PostgresOptions::new(url) }
}

/// Opens a queue on the database. Panics if the database refuses it.
#[track_caller]
pub(crate) fn node(url: &str, name: &str) -> Queue {
    let stores = options(url, name).connect().expect("the database takes the process");
    Queue::options().open_shards(stores).expect("the queue opens")
}

/// Returns the queue of the tests.
pub(crate) fn name() -> QueueName {
    QueueName::new("work").expect("a good name")
}

pub(crate) fn key(key: &str) -> Key {
    Key::new(key).expect("a good key")
}

/// A put of a task that is due after this time.
pub(crate) fn put(text: &str, after: Duration) -> Put {
    Put::new(&name(), key(text)).after(after).payload(text.as_bytes().to_vec())
}

/// The keys of all live tasks.
#[track_caller]
pub(crate) fn texts(queue: &Queue) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut list = List { max: 1_000, ..List::new(&name()) };
    loop {
        let page = queue.list(list.clone()).wait().expect("the queue answers");
        keys.extend(page.tasks.iter().map(|task| task.key.as_str().to_owned()));
        match page.next {
            Some(next) => list.after = Some(next),
            None => return keys,
        }
    }
}
