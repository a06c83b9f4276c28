//! Batches are rolled up, and the state after a rollup is the same state, also with a snapshot that is held open.

use std::time::Duration;

use crate::kit::{Database, key, name, options, put, texts, until};
use tickwheel_queue::{Ack, Cancel, Get, GetError, Lease, ListQueues, Queue, TokenAnswer};

/// Opens a queue whose batches are rolled up after this many.
fn node(database: &Database<'_>, rollup_batches: u64) -> Queue {
    let stores = options(&database.url(), "rollups").connect().expect("the database takes the process");
    let stores = stores.into_iter().map(|store| store.with_rollup_batches(rollup_batches)).collect();
    Queue::options().open_shards(stores).expect("the queue opens")
}

fn counts(queue: &Queue) -> Vec<[u64; 4]> {
    let page = queue.queues(ListQueues { max: 100, ..ListQueues::default() }).wait().expect("answered");
    page.queues.iter().map(|of| [of.scheduled, of.ready, of.leased, of.dead]).collect()
}

/// One commit each: a put in one of three ways, a cancel or an ack.
fn commits(queue: &Queue, from: u64, to: u64) {
    for n in from..to {
        let text = format!("k{n}");
        let after = if n % 3 == 0 { Duration::ZERO } else { Duration::from_secs(86_400) };
        queue.put(put(&text, after)).wait().expect("stored");
        match n % 3 {
            0 => {
                let leased =
                    queue.lease(Lease::new(&name()), Duration::from_secs(60)).wait().expect("leased");
                let ack = Ack::new(&name(), leased.iter().map(|task| task.token));
                assert_eq!(queue.ack(ack).wait().expect("answered"), [TokenAnswer::Acked]);
            }
            1 => drop(queue.cancel(Cancel::new(&name(), key(&text))).wait().expect("cancelled")),
            _ => {}
        }
    }
}

/// Checks the tasks that are there and those that have ended.
#[track_caller]
fn all_is_there(queue: &Queue, to: u64) {
    assert_eq!(texts(queue).len() as u64, to / 3);
    for n in 0..to {
        let got = queue.get(Get::new(&name(), key(&format!("k{n}")))).wait();
        match n % 3 {
            0 => assert_eq!(got.expect_err("it was acked"), GetError::Done, "k{n}"),
            1 => assert_eq!(got.expect_err("it was cancelled"), GetError::NotFound, "k{n}"),
            _ => assert_eq!(got.expect("it is there").body.payload_at(0).0, format!("k{n}").as_bytes()),
        }
    }
}

fn batches(database: &Database<'_>) -> u64 {
    database.psql("SELECT count(*) FROM tickwheel.batch").parse().expect("a number")
}

#[test]
fn more_than_a_thousand_commits_are_rolled_up() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = node(&database, 1_000);
    commits(&queue, 0, 660);
    until("a rollup is made", || database.psql("SELECT count(*) FROM tickwheel.rollup") == "1");
    until("the batches are gone", || batches(&database) < 1_000);
    let before = counts(&queue);
    let last_id = queue.put(put("last", Duration::from_secs(86_400))).wait().expect("stored").task.id;
    queue.cancel(Cancel::new(&name(), key("last"))).wait().expect("cancelled");
    all_is_there(&queue, 660);
    queue.close();
    let queue = node(&database, 1_000);
    assert_eq!(counts(&queue), before);
    all_is_there(&queue, 660);
    let id = queue.put(put("next", Duration::from_secs(86_400))).wait().expect("stored").task.id;
    assert!(id > last_id, "the id {id} was given out before {last_id}");
    queue.close();
}

/// A dump holds its snapshot for long. The store goes on, and removes its batches all the same.
#[test]
fn a_snapshot_that_is_held_open_stops_neither_commits_nor_rollups() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    let queue = node(&database, 20);
    commits(&queue, 0, 30);
    let mut dump = database.session("postgres");
    let held = dump.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM tickwheel.task");
    assert_eq!(held, "10");
    commits(&queue, 30, 600);
    until("the batches are rolled up", || batches(&database) <= 40);
    let before = counts(&queue);
    queue.close();
    for rollup_batches in [20, 5] {
        // Each opening reads the rollups of the one before, and goes on with its own.
        let queue = node(&database, rollup_batches);
        assert_eq!(counts(&queue), before);
        all_is_there(&queue, 600);
        queue.close();
    }
    assert_eq!(dump.run("SELECT count(*) FROM tickwheel.task"), "10");
    dump.run("COMMIT");
}
