//! The plans of statements on tables without statistics, as a new data set has them until the first ANALYZE.

mod kit;

use std::time::Duration;

use kit::{node, put, shared};

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
        let tasks = batch * BATCH..(batch + 1) * BATCH;
        let puts: Vec<_> =
            tasks.map(|n| queue.put(put(&format!("order:{n}"), Duration::from_secs(86_400)))).collect();
        for put in puts {
            put.wait().expect("a new task");
        }
    }
    // A session tells its counts at its end.
    queue.close();
    drop(queue);
    let read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = 'tickwheel' AND indexrelname = 'task_shard_queue_key_key'";
    kit::until("the counts come", || {
        let inserted =
            "SELECT n_tup_ins FROM pg_stat_user_tables WHERE schemaname = 'tickwheel' AND relname = 'task'";
        let open = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'tickwheel/%' AND datname = current_database()";
        database.psql(inserted) == TASKS.to_string() && database.psql(open) == "0"
    });
    let read: usize = database.psql(read).parse().expect("a number");
    assert!(read < TASKS, "the look-ups of {TASKS} new keys read {read} entries of the index");
}
