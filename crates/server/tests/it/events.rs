//! `GET /v1/events`.

use serde_json::{Value, json};
use tickwheel_server::{Config, Tokens};

use crate::described;
use crate::raw::Connection;
use crate::served::{Served, virtual_memory};

/// A stream of events.
struct Events {
    connection: Connection,
    /// The text that was received and not read yet.
    text: Vec<u8>,
}

impl Events {
    fn open(served: &Served, query: &str, token: &str) -> Self {
        let mut connection = served.connect();
        let bearer = format!("Bearer {token}");
        connection.request("GET", &format!("/v1/events{query}"), &[("authorization", &bearer)], b"");
        let head = connection.head();
        assert_eq!(head.status, 200);
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("cache-control"), Some("no-store"));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        let mut events = Self { connection, text: Vec::new() };
        assert_eq!(events.block().as_deref(), Some("retry: 2000"));
        events
    }

    /// The text before the next empty line; `None`: the stream has ended.
    fn block(&mut self) -> Option<String> {
        loop {
            if let Some(at) = self.text.windows(2).position(|two| two == b"\n\n") {
                let rest = self.text.split_off(at + 2);
                let mut block = std::mem::replace(&mut self.text, rest);
                block.truncate(at);
                return Some(String::from_utf8(block).expect("UTF-8"));
            }
            if !self.connection.chunk(&mut self.text) {
                assert!(self.text.is_empty(), "the stream ended within an event");
                return None;
            }
        }
    }

    /// The next event: its topic, its number, and its data, which must be as they are described.
    fn next(&mut self) -> Option<(String, u64, Value)> {
        let block = self.block()?;
        let mut lines = block.lines();
        let mut field = |name: &str| {
            let line = lines.next().unwrap_or_else(|| panic!("no {name} in {block}"));
            line.strip_prefix(name).unwrap_or_else(|| panic!("no {name} in {block}")).to_owned()
        };
        let (topic, number) = (field("event: "), field("id: ").parse().expect("a number"));
        let data: Value = serde_json::from_str(&field("data: ")).expect("JSON");
        described::check_event(&topic, &data);
        Some((topic, number, data))
    }

    /// The next event of a topic.
    fn of(&mut self, topic: &str) -> Value {
        loop {
            let (found, _, data) = self.next().expect("the stream goes on");
            if found == topic {
                return data;
            }
        }
    }
}

fn names(rows: &Value) -> Vec<&str> {
    let rows = rows["queues"].as_array().expect("a list");
    rows.iter().map(|row| row["queue"].as_str().expect("a name")).collect()
}

#[test]
fn a_stream_begins_with_the_whole_state_and_goes_on_with_changes() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/now/tasks/a", "{}");
    served.expect(201, "PUT", "/v1/queues/later/tasks/a", r#"{"delay":"1h"}"#);
    let mut events = Events::open(&served, "", "");
    let (topics, data): (Vec<String>, Vec<Value>) =
        (0..3).map(|_| events.next().expect("an event")).map(|(topic, _, data)| (topic, data)).unzip();
    assert_eq!(topics, ["stats", "queues", "jobs"]);
    let (stats, rows, jobs) = (&data[0], &data[1], &data[2]);
    assert_eq!(stats["totals"], json!({ "scheduled": 1, "ready": 1, "leased": 0, "dead": 0 }));
    assert_eq!((&stats["queues"], &stats["counters"]["put"]), (&json!(2), &json!(2)));
    assert_eq!(
        stats["lateness"].as_array().and_then(|all| all.last()).expect("a bucket")["le_us"],
        Value::Null
    );
    assert!(stats["oldest_due"].is_string() && stats["commit"].is_array(), "{stats}");
    assert_eq!(
        (names(rows), &rows["whole"], &rows["more"]),
        (vec!["now", "later"], &json!(true), &json!(false))
    );
    assert_eq!(rows["queues"][1]["oldest_due"], Value::Null);
    assert_eq!(jobs["jobs"], json!([]));
    served.expect(201, "PUT", "/v1/queues/later/tasks/b", r#"{"delay":"1h"}"#);
    served.expect(200, "DELETE", "/v1/queues/now/tasks/a", "");
    let mut changed: Vec<String> = Vec::new();
    while changed.len() < 2 {
        let rows = events.of("queues");
        assert_eq!(rows["whole"], json!(false), "{rows}");
        changed.extend(names(&rows).into_iter().map(str::to_owned));
    }
    changed.sort();
    assert_eq!(changed, ["later", "now"]);
}

#[test]
fn topics_and_rows_are_chosen() {
    let served = Served::memory();
    for queue in ["shop%2Fa", "shop%2Fb", "shop"] {
        served.expect(201, "PUT", &format!("/v1/queues/{queue}/tasks/a"), "{}");
    }
    let first = |query: &str| Events::open(&served, query, "").next().expect("an event");
    let (topic, _, rows) = first("?topics=queues&prefix=shop/");
    assert_eq!((&*topic, names(&rows)), ("queues", vec!["shop/a", "shop/b"]));
    assert_eq!(names(&first("?topics=queues&queue=shop").2), ["shop"]);
    assert_eq!(first("?topics=jobs").0, "jobs");
    let (topic, _, wheel) = first("?topics=wheel");
    assert_eq!((&*topic, wheel["levels"].as_array().map(Vec::len)), ("wheel", Some(4)), "{wheel}");
    for (query, what) in [
        ("?topics=odd", "`topics`: `odd` is not known"),
        ("?topic=stats", "did you mean `topics`?"),
        ("?queue=a%20b", "the queue name"),
        ("?queue=a&prefix=b", "`prefix`: stands beside `queue`"),
    ] {
        let reply = served.call("GET", &format!("/v1/events{query}"), "");
        assert_eq!(reply.status, 400, "{query}");
        assert!(reply.text().contains(what), "{query}: {}", reply.text());
    }
}

#[test]
fn a_token_with_a_scope_is_told_of_its_queues_only() {
    let text = "a-token-of-the-administrator\na-token-of-a-reader rights=read scope=shop/\na-token-of-a-worker rights=consume";
    let tokens = Tokens::parse(text).expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    for queue in ["shop%2Fa", "other"] {
        let target = format!("/v1/queues/{queue}/tasks/a");
        let headers = [("authorization", "Bearer a-token-of-the-administrator")];
        assert_eq!(served.call_with("PUT", &target, &headers, "{}").status, 201);
    }
    let mut events = Events::open(&served, "", "a-token-of-a-reader");
    let stats = events.of("stats");
    assert_eq!(
        (&stats["totals"]["ready"], &stats["queues"], &stats["counters"]["put"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert!(stats.get("commit").is_none() && stats.get("room_bytes").is_none(), "{stats}");
    assert_eq!(names(&events.of("queues")), ["shop/a"]);
    let refused = |token: &str, query: &str| {
        let bearer = format!("Bearer {token}");
        served.call_with("GET", &format!("/v1/events{query}"), &[("authorization", &bearer)], "").status
    };
    assert_eq!(refused("a-token-of-a-reader", "?queue=other"), 404);
    assert_eq!(refused("a-token-of-a-worker", ""), 403);
    assert_eq!(refused("wrong", ""), 401);
}

#[test]
fn eight_streams_of_a_token_are_open_at_most() {
    let tokens = Tokens::parse("a-token-of-a-reader rights=read").expect("tokens");
    let served = Served::start(Config { tokens, ..virtual_memory() }).expect("started");
    let mut open: Vec<Events> = (0..8).map(|_| Events::open(&served, "", "a-token-of-a-reader")).collect();
    let ninth =
        || served.call_with("GET", "/v1/events", &[("authorization", "Bearer a-token-of-a-reader")], "");
    let refused = ninth();
    refused.assert_problem(429, "busy", "the ninth");
    assert_eq!(refused.header("retry-after"), Some("5"));
    open.pop();
    crate::served::until("the seat of a client that left is free", || {
        let mut connection = served.connect();
        connection.request("GET", "/v1/events", &[("authorization", "Bearer a-token-of-a-reader")], b"");
        connection.head().status == 200
    });
}

/// A page of another site could hold all places of a server on this computer.
#[test]
fn a_page_of_another_site_opens_no_stream() {
    let served = Served::memory();
    let reply = served.call_with("GET", "/v1/events", &[("sec-fetch-site", "cross-site")], "");
    reply.assert_problem(403, "foreign-origin", "another site");
}

#[test]
fn a_stop_of_the_server_ends_the_streams_at_once() {
    let mut served = Served::memory();
    let mut events = Events::open(&served, "", "");
    served.tell_to_stop();
    while events.next().is_some() {}
    served.stop();
}
