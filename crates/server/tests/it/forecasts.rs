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

#[test]
fn a_logarithmic_forecast_reaches_from_a_second_to_a_hundred_years() {
    let served = Served::memory();
    for (key, delay) in [("a", "500ms"), ("b", "1s"), ("c", "59s"), ("d", "3d"), ("e", "40y"), ("now", "0s")]
    {
        let delay = delay.strip_suffix('y').map_or(delay.to_owned(), |_| format!("{}d", 40 * 365));
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{key}"), &format!(r#"{{"delay":"{delay}"}}"#));
    }
    let found = served.expect(200, "GET", "/v1/forecast?scale=log", "");
    let from = found["from"].as_str().expect("a time").parse::<String>().expect("a text");
    let ms = |value: &Value| tickwheel_api::time::parse(value.as_str().expect("a time")).expect("RFC 3339");
    let start = tickwheel_api::time::parse(&from).expect("RFC 3339");
    let rows = found["buckets"].as_array().expect("a list");
    let spans: Vec<_> = rows
        .iter()
        .map(|row| {
            ((ms(&row["at"]) - start) / 1_000, (ms(&row["to"]) - start) / 1_000, row["tasks"].as_u64())
        })
        .collect();
    let day = 86_400;
    assert_eq!(
        spans,
        [
            (0, 1, Some(1)),
            (1, 5, Some(1)),
            (55, 60, Some(1)),
            (3 * day, 7 * day, Some(1)),
            (20 * 365 * day, 50 * 365 * day, Some(1)),
        ]
    );
    assert_eq!((&found["tasks"], found.get("bucket")), (&json!(5), None));
    assert_eq!(ms(&found["to"]) - start, 100 * 365 * day * 1_000);
    for (query, what) in [
        ("?scale=log&bucket=1h", "`bucket`: means nothing with `scale=log`"),
        ("?scale=odd", "`scale`: `odd` is not known"),
        ("?from=soon", "`from`: `soon` is not an RFC 3339 time"),
        ("?schedules=1", "`schedules`: `1` is not known"),
    ] {
        let refused = served.call("GET", &format!("/v1/forecast{query}"), "");
        assert!(refused.status == 400 && refused.text().contains(what), "{query}: {}", refused.text());
    }
}

#[test]
fn a_forecast_begins_where_it_is_asked_to() {
    let served = Served::memory();
    for (key, at) in
        [("a", "2090-01-01T00:30:00Z"), ("b", "2090-01-01T02:00:00Z"), ("c", "2089-12-31T23:59:59Z")]
    {
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{key}"), &format!(r#"{{"at":"{at}"}}"#));
    }
    let found = served.expect(200, "GET", "/v1/forecast?bucket=1h&span=2h&from=2090-01-01T00:10:00Z", "");
    assert_eq!((&found["from"], buckets(&found)), (&json!("2090-01-01T00:00:00.000Z"), vec![1, 1]));
    let past = served.expect(200, "GET", "/v1/forecast?bucket=1h&span=2h&from=0", "");
    assert_eq!(buckets(&past), [] as [u64; 0], "the past has no tasks that are to come");
}

#[test]
fn the_instants_of_schedules_are_counted_beside_the_tasks() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/q/tasks/a", r#"{"at":"2090-01-01T00:30:00Z"}"#);
    for (queue, name, spec) in
        [("q", "hourly", r#"{"cron":"5 * * * *","tz":"UTC"}"#), ("p", "often", r#"{"every":"1s"}"#)]
    {
        served.expect(201, "PUT", &format!("/v1/queues/{queue}/schedules/{name}"), spec);
    }
    let ask = |query: &str| served.expect(200, "GET", &format!("/v1/forecast?bucket=1h&{query}"), "");
    let day = ask("span=23h&from=2090-01-01T00:00:00Z&queue=q&schedules=true");
    assert_eq!((&day["tasks"], &day["expected"], day.get("truncated")), (&json!(1), &json!(24), None));
    let now = served.advance("0s")["now"].as_str().map(tickwheel_api::time::parse);
    let hour_ms = 3_600_000;
    let next = (now.expect("a time").expect("RFC 3339") / hour_ms + 1) * hour_ms;
    let near = ask(&format!("from={next}&span=23h&queue=q&schedules=true"));
    assert_eq!((&near["tasks"], &near["expected"], near.get("truncated")), (&json!(0), &json!(24), None));
    assert_eq!(near["buckets"][1]["expected"], json!(1));
    let all = ask("span=4h&schedules=true");
    assert_eq!(
        all["truncated"],
        json!(true),
        "an instant each second has more than ten thousand in four hours: {all}"
    );
    assert!(ask("span=4h")["expected"].is_null(), "they were not asked for");
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
