//! `/v1/forecast`: how many tasks become due, and when.

use serde_json::{Value, json};
use tickwheel_server::{Config, Store, Tokens};

use crate::served::{Served, on_any_port, virtual_memory};

fn buckets(answer: &Value) -> Vec<u64> {
    let buckets = answer["buckets"].as_array().expect("a list");
    buckets.iter().map(|bucket| bucket["tasks"].as_u64().expect("a count")).collect()
}

#[test]
fn a_forecast_counts_the_due_tasks_of_each_bucket() {
    let served = Served::memory();
    // The clock stands still at an arbitrary moment, so buckets of an hour begin within the next hour.
    for (queue, key, delay) in [
        ("a", "1", "2h"),
        ("a", "2", "2h"),
        ("a", "3", "25h"),
        ("b", "1", "2h"),
        ("b", "2", "0s"),
        ("b", "3", "30d"),
    ] {
        served.expect(
            201,
            "PUT",
            &format!("/v1/queues/{queue}/tasks/{key}"),
            &format!(r#"{{"delay":"{delay}"}}"#),
        );
    }
    let all = served.expect(200, "GET", "/v1/forecast?bucket=1h&span=48h", "");
    assert_eq!((buckets(&all), &all["tasks"], &all["bucket"]), (vec![3, 1], &json!(4), &json!("1h")));
    let of_a = served.expect(200, "GET", "/v1/forecast?bucket=1h&span=48h&queue=a", "");
    assert_eq!((buckets(&of_a), &of_a["queue"]), (vec![2, 1], &json!("a")));
    let minutes = served.expect(200, "GET", "/v1/forecast", "");
    assert_eq!((buckets(&minutes), &minutes["bucket"]), (vec![3], &json!("1m")));
    // Tasks that were moved, cancelled or became ready are counted where they belong now.
    served.expect(200, "PATCH", "/v1/queues/a/tasks/1", r#"{"delay":"20h"}"#);
    served.expect(200, "DELETE", "/v1/queues/a/tasks/2", "");
    served.advance("3h");
    let later = served.expect(200, "GET", "/v1/forecast?bucket=1h&span=48h", "");
    assert_eq!(buckets(&later), [1, 1]);
    assert_eq!(buckets(&served.expect(200, "GET", "/v1/forecast?queue=none", "")), [] as [u64; 0]);
}

/// The memtable has more tasks, and more bytes, than one part of a count reads. Overlapping parts would count
/// some tasks twice.
#[test]
fn each_task_in_the_memtable_is_counted_once() {
    const TASKS: u64 = 60_000;
    const LINES: u64 = 2_000;
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::Dir(dir.path().to_owned());
    let served = Served::start(Config { virtual_clock: true, ..on_any_port(store) }).expect("started");
    let payload = "x".repeat(2_000);
    for first in (0..TASKS).step_by(LINES as usize) {
        let line = |i: u64| {
            let delay_ms = 600_000 + 100 * i;
            format!(r#"{{"op":"put","key":"{i}","delay":"{delay_ms}ms","payload":"{payload}"}}"#)
        };
        let lines: Vec<String> = (first..first + LINES).map(line).collect();
        let reply = served.call("POST", "/v1/queues/q/batch", &lines.join("\n"));
        assert_eq!(reply.text().matches(r#""status":201"#).count(), LINES as usize, "all are new");
    }
    for query in ["", "?queue=q", "?bucket=1h&span=10080h", "?bucket=1m&span=180m"] {
        let counted = served.expect(200, "GET", &format!("/v1/forecast{query}"), "");
        assert_eq!(counted["tasks"], TASKS, "{query}");
        assert_eq!(buckets(&counted).iter().sum::<u64>(), TASKS, "{query}");
    }
}

#[test]
fn an_invalid_forecast_is_refused() {
    let served = Served::memory();
    for (query, what) in [
        ("bucket=1", "no unit"),
        ("bucket=1ms", "shorter than a second"),
        ("span=1000d", "not from 1 to 10080"),
        ("queue=a&queue=b", "given twice"),
    ] {
        let reply = served.call("GET", &format!("/v1/forecast?{query}"), "");
        assert_eq!(reply.status, 400, "{query}");
        assert!(reply.text().contains(what), "{query}: {}", reply.text());
    }
    served.call("GET", "/v1/forecast?queue=a%20b", "").assert_problem(400, "bad-name", "a space");
}

#[test]
fn a_scope_sees_only_its_own_queues() {
    let tokens = Tokens::parse("worker-worker-worker-worker rights=read scope=shop/").expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let ask = |query: &str| {
        let headers = [("authorization", "Bearer worker-worker-worker-worker")];
        served.call_with("GET", &format!("/v1/forecast{query}"), &headers, "")
    };
    assert_eq!(ask("?queue=shop%2Forders").status, 200);
    ask("?queue=other").assert_problem(404, "out-of-scope", "another's queue");
    ask("").assert_problem(403, "forbidden", "all queues");
}
