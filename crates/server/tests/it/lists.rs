//! Pages of tasks.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::served::Served;

fn fill(served: &Served, queue: &str, tasks: usize) {
    let lines: String = (0..tasks)
        .map(|n| format!("{{\"op\":\"put\",\"key\":\"k{n:04}\",\"delay\":\"{}s\"}}\n", n / 7))
        .collect();
    let reply = served.call("POST", &format!("/v1/queues/{queue}/batch"), &lines);
    assert_eq!(reply.lines().iter().filter(|line| line["status"] == 201).count(), tasks);
}

/// The keys of all pages, and the number of pages.
fn walk(served: &Served, target: &str) -> (Vec<String>, usize) {
    let (mut keys, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    loop {
        let page = served.expect(200, "GET", &format!("{target}{cursor}"), "");
        let tasks = page["tasks"].as_array().expect("an array");
        keys.extend(tasks.iter().map(|task| task["key"].as_str().expect("a key").to_owned()));
        pages += 1;
        match &page["next_cursor"] {
            Value::Null => return (keys, pages),
            Value::String(next) => cursor = format!("&cursor={next}"),
            other => panic!("next_cursor is {other}"),
        }
    }
}

#[test]
fn paging_shows_every_task_once_in_the_order_of_time() {
    let served = Served::memory();
    fill(&served, "q", 2_500);
    fill(&served, "other", 3);
    let expected: Vec<String> = (0..2_500).map(|n| format!("k{n:04}")).collect();
    for limit in [1_000, 999, 7_0] {
        let (keys, pages) = walk(&served, &format!("/v1/queues/q/tasks?limit={limit}"));
        assert_eq!(keys, expected, "limit {limit}");
        assert!(pages >= 2_500_usize.div_ceil(limit), "{pages} pages of {limit}");
    }
    let (keys, _) = walk(&served, "/v1/queues/q/tasks?state=scheduled");
    assert_eq!(keys.len(), 2_500 - 7, "seven are due now");
    let first = served.expect(200, "GET", "/v1/queues/q/tasks", "");
    assert_eq!(first["tasks"].as_array().map(Vec::len), Some(100), "by default");
}

#[test]
fn a_list_goes_by_state() {
    let served = Served::memory();
    fill(&served, "q", 21);
    served.lease("q", 2);
    let of = |state: &str| walk(&served, &format!("/v1/queues/q/tasks?limit=5&state={state}")).0;
    assert_eq!(of("leased"), ["k0000", "k0001"]);
    assert_eq!(of("ready"), ["k0002", "k0003", "k0004", "k0005", "k0006"]);
    assert_eq!(of("scheduled").len(), 14);
    assert_eq!(of("dead"), [] as [String; 0]);
    let all: BTreeSet<String> = walk(&served, "/v1/queues/q/tasks?limit=5").0.into_iter().collect();
    assert_eq!(all.len(), 21);
    assert_eq!(walk(&served, "/v1/queues/never-used/tasks?limit=5").0, [] as [String; 0]);
}

#[test]
fn a_cursor_of_another_list_is_refused() {
    let served = Served::memory();
    fill(&served, "q", 10);
    fill(&served, "p", 10);
    let page = served.expect(200, "GET", "/v1/queues/q/tasks?limit=3", "");
    let cursor = page["next_cursor"].as_str().expect("more to come");
    served.expect(200, "GET", &format!("/v1/queues/q/tasks?limit=9&cursor={cursor}"), "");
    let longer = format!("{cursor}0");
    for target in [
        format!("/v1/queues/p/tasks?cursor={cursor}"),
        format!("/v1/queues/q/tasks?cursor={cursor}&state=ready"),
        format!("/v1/queues/q/tasks?cursor={longer}"),
        "/v1/queues/q/tasks?cursor=x".to_owned(),
    ] {
        let reply = served.call("GET", &target, "");
        reply.assert_problem(400, "bad-request", &target);
        assert_eq!(reply.json()["parameter"], "cursor", "{target}");
    }
}

fn keys_of(page: &serde_json::Value) -> Vec<String> {
    let tasks = page["tasks"].as_array().expect("an array");
    tasks.iter().map(|task| task["key"].as_str().expect("a key").to_owned()).collect()
}

#[test]
fn a_list_by_tag_and_span_shows_only_those_tasks() {
    let served = Served::memory();
    for (key, at_ms, tags) in [
        ("a", 4_000_000_000_000_i64, "[\"vip\"]"),
        ("b", 4_000_000_001_000, "[]"),
        ("c", 4_000_000_002_000, "[\"eu\",\"vip\"]"),
        ("d", 4_000_000_003_000, "[\"vip\"]"),
    ] {
        let body = format!(r#"{{"at_ms":{at_ms},"tags":{tags}}}"#);
        served.expect(201, "PUT", &format!("/v1/queues/close/tasks/{key}"), &body);
    }
    let list =
        |query: &str| keys_of(&served.expect(200, "GET", &format!("/v1/queues/close/tasks?{query}"), ""));
    assert_eq!(list("tag=vip"), ["a", "c", "d"]);
    assert_eq!(list("tag=eu"), ["c"]);
    assert_eq!(
        list("due_from=4000000001000&due_to=2096-10-02T07:06:42Z"),
        ["b", "c"],
        "both ends belong to it"
    );
    assert_eq!(list("due_from=4000000001000&tag=vip&state=scheduled"), ["c", "d"]);
    assert_eq!(list("tag=vip&state=ready"), Vec::<String>::new());
    // The list has several pages, and a cursor belongs to its filter.
    let first = served.expect(200, "GET", "/v1/queues/close/tasks?tag=vip&limit=2", "");
    let cursor = first["next_cursor"].as_str().expect("there is more");
    let mut found = keys_of(&first);
    let mut next = Some(cursor.to_owned());
    while let Some(cursor) = next {
        let target = format!("/v1/queues/close/tasks?tag=vip&limit=2&cursor={cursor}");
        let page = served.expect(200, "GET", &target, "");
        found.extend(keys_of(&page));
        next = page["next_cursor"].as_str().map(str::to_owned);
    }
    assert_eq!(found, ["a", "c", "d"]);
    let other = format!("/v1/queues/close/tasks?tag=eu&limit=2&cursor={cursor}");
    served.call("GET", &other, "").assert_problem(400, "bad-request", "cursor");
}
