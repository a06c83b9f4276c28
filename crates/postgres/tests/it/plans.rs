//! The plans of statements on tables without statistics, as a new data set has them until the first ANALYZE, and with those of an empty table.

use std::time::Duration;

use crate::kit::{Database, name, node, put, shared};
use tickwheel_queue::{Ack, Body, Lease, List, Put, Queue, TaskPage};

/// As many tasks as would make a look-up that reads all of them stand out.
const TASKS: usize = 2_000;
const BATCH: usize = 200;

#[test]
fn a_look_up_in_a_table_without_statistics_reads_no_other_task() {
    let Some(server) = shared() else { return };
    let database = server.database();
    let queue = node(&database.url(), "a");
    // Otherwise an ANALYZE could come in between, and the test would show nothing.
    database.psql("ALTER TABLE tickwheel.task SET (autovacuum_enabled = off)");
    for batch in 0..TASKS / BATCH {
        put_all(&queue, batch * BATCH..(batch + 1) * BATCH, Duration::from_secs(86_400));
    }
    let read = read(&database, queue, "task_queue_key_key");
    assert!(read < TASKS, "the look-ups of {TASKS} new keys read {read} entries of the index");
}

#[test]
fn a_look_up_among_dead_rows_reads_no_other_task() {
    let Some(server) = shared() else { return };
    let database = server.database();
    let queue = node(&database.url(), "a");
    database.psql("ALTER TABLE tickwheel.task SET (autovacuum_enabled = off)");
    // As a dump does: no row that is dead from now on is removed.
    let mut held = database.session("postgres");
    held.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");
    for batch in 0..TASKS / BATCH {
        work(&queue, batch * BATCH..(batch + 1) * BATCH);
    }
    // Now the planner expects next to no task in the table, and makes all plans anew.
    database.psql("VACUUM ANALYZE tickwheel.task");
    for task in TASKS..TASKS + 50 {
        work(&queue, task..task + 1);
    }
    let read = read(&database, queue, "task_due");
    assert!(read < 10 * TASKS, "{read} entries of an index were read that no look-up needs");
}

/// The story: a page of 1,000 bodies of 1 MB was in the memory of a reader as a whole.
#[test]
fn a_page_of_large_bodies_is_read_in_pieces() {
    let Some(server) = shared() else { return };
    let database = server.database();
    let queue = node(&database.url(), "a");
    let body = |n: usize| Body::bytes(vec![n as u8; 1_000_000]);
    let put_of =
        |n: usize| Put { body: body(n), ..put(&format!("order:{n:02}"), Duration::from_secs(86_400)) };
    let puts: Vec<_> = (0..12).map(|n| queue.put(put_of(n))).collect();
    for put in puts {
        put.wait().expect("a new task");
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let list = List { max: 1_000, after, ..List::new(&name()) };
        let TaskPage { tasks, next, .. } = queue.list(list).wait().expect("a page");
        assert!(tasks.len() <= 5, "{} bodies of 1 MB in one page", tasks.len());
        found.extend(tasks.into_iter().map(|task| (task.key.as_str().to_owned(), task.body.payload[0])));
        after = next;
        if after.is_none() {
            break;
        }
    }
    found.sort();
    let expected: Vec<_> = (0..12).map(|n| (format!("order:{n:02}"), n as u8)).collect();
    assert_eq!(found, expected);
}

/// Puts tasks, and waits for the answers.
fn put_all(queue: &Queue, tasks: std::ops::Range<usize>, after: Duration) {
    let puts: Vec<_> = tasks.map(|n| queue.put(put(&format!("order:{n}"), after))).collect();
    for put in puts {
        put.wait().expect("a new task");
    }
}

/// Puts tasks that are due, takes them, and ends them.
fn work(queue: &Queue, tasks: std::ops::Range<usize>) {
    let count = tasks.len();
    put_all(queue, tasks, Duration::ZERO);
    let mut taken = 0;
    while taken < count {
        let lease = Lease::new(&name()).max(count);
        let leased = queue.lease(lease, Duration::from_secs(60)).wait().expect("leased");
        taken += leased.len();
        queue.ack(Ack::new(&name(), leased.iter().map(|task| task.token))).wait().expect("acked");
    }
}

/// Closes the queue, and returns how many entries of the index were read.
fn read(database: &Database<'_>, queue: Queue, index: &str) -> usize {
    // A session tells its counts at its end.
    queue.close();
    drop(queue);
    crate::kit::until("the counts come", || {
        let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tickwheel/%' AND datname = current_database()";
        let inserted = "SELECT n_tup_ins >= 2000 FROM pg_stat_user_tables WHERE schemaname = 'tickwheel' AND relname = 'task'";
        database.psql(open) == "0" && database.psql(inserted) == "t"
    });
    let read =
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE schemaname = 'tickwheel' AND indexrelname = ";
    database.psql(&format!("{read}'{index}'")).parse().expect("a number")
}
