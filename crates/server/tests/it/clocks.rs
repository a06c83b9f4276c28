//! The virtual clock.

use tickwheel_server::{Config, Store};

use crate::served::{Served, on_any_port};

#[test]
fn all_due_tasks_are_ready_before_an_advance_answers() {
    let served = Served::memory();
    let lines: String = (0..1_000)
        .map(|n| format!("{{\"op\":\"put\",\"key\":\"{n}\",\"delay\":\"{}ms\"}}\n", n * 1_296_000))
        .collect();
    assert_eq!(served.call("POST", "/v1/queues/q/batch", &lines).lines().len(), 1_000);
    assert_eq!(served.counts("q"), [999, 1, 0]);
    let now = served.advance("15d");
    assert_eq!(served.counts("q"), [0, 1_000, 0]);
    assert_eq!(served.advance("0s"), now, "it stands still");
    assert_eq!(served.metric("tickwheel_oldest_due_age_seconds"), 15.0 * 86_400.0);
    assert_eq!(served.metric("tickwheel_fire_lateness_seconds_sum"), 0.0, "each fired at its own instant");
}

#[test]
fn a_real_clock_is_not_moved() {
    let served =
        Served::start(Config { virtual_clock: false, ..on_any_port(Store::Memory) }).expect("started");
    let reply = served.call("POST", "/v1/clock/advance", r#"{"by":"1s"}"#);
    reply.assert_problem(404, "no-virtual-clock", "advance");
    assert!(reply.text().contains("--virtual-clock"), "{}", reply.text());
}
