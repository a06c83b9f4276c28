//! The clock of the database, as a process knows it whose answers are slow.

use std::time::Duration;

use tickwheel_queue::Queue;

use crate::kit::{Proxy, options, put, until};

const LATE: Duration = Duration::from_millis(800);
const DELAY: Duration = Duration::from_secs(3);

/// The story: the answers of a database took 0.8 s, and its clock was right. The process took that for a clock that was set back, and a delay
/// of 3 s was over after 2.2 s. This test reads the clock of the database directly at each call.
#[test]
fn slow_answers_are_no_step_of_the_clock_and_no_delay_is_early() {
    let Some(server) = crate::kit::shared() else { return };
    let database = server.database();
    // No beat is valid under a lease that is shorter than the answers take.
    let open = |url: &str| {
        let mut options = options(url, "first");
        options.plan.lease_ms = 10_000;
        let stores = options.connect().expect("the database takes the process");
        Queue::options().open_shards(stores).expect("the queue opens")
    };
    // The tables are made without the proxy, because that takes many round trips.
    open(&database.url()).close();
    let proxy = Proxy::start(server.port(), LATE);
    let queue = open(&format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), database.name()));
    until("the process has the shard", || queue.health().ready);
    for text in ["one", "two", "three"] {
        // The time is known before the call begins. So the call is not before it.
        let called_ms = database.psql("SELECT ceil(extract(epoch FROM clock_timestamp()) * 1000)::int8");
        let due_ms = called_ms.parse::<i64>().expect("a number") + DELAY.as_millis() as i64;
        let stored = queue.put(put(text, DELAY)).wait().expect("the put is stored");
        let early_ms = due_ms - stored.task.due_at.as_ms();
        assert!(early_ms <= 0, "`{text}` is early by {early_ms} ms");
        let health = queue.health();
        assert_eq!((health.clock_steps, health.clock_offset_ms), (0, 0), "the clock was not set");
        assert!(health.clock_width >= LATE, "no answer was quicker: {:?}", health.clock_width);
    }
    queue.close();
}
