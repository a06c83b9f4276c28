//! Payloads that follow JSON's grammar but that some readers reject.

use serde_json::{Value, json};
use tickwheel_api::{LeasedTasks, PayloadBody, PutBody, TaskBody};
use tickwheel_server::{Config, PostgresPlan, Store};

use crate::postgres;
use crate::served::{Served, on_any_port, until, virtual_memory};

/// A payload, the member, and the words of its refusal.
const ODD: [(&str, &str, &str); 5] = [
    ("1e400", "payload", "`1e400` at byte 0 is beyond"),
    (r#"{"a":[1,{"b":-1e400}]}"#, "payload.a[1].b", "`-1e400` at byte 13 is beyond"),
    (r#""x\ud800""#, "payload", r"`\ud800` at byte 2 is half of a surrogate pair"),
    (r#"{"a":{"b":1,"b":2}}"#, "payload.a.b", "`b` at byte 12 is given twice"),
    (r#"{"a":1,"\u0061":2}"#, r#"payload["\u0061"]"#, "is given twice"),
];

/// A body with this text as its payload.
fn in_base64(payload: &str) -> String {
    let payload = PayloadBody { bytes: payload.into(), content_type: "text/plain".to_owned() };
    String::from_utf8(PutBody { payload, ..PutBody::default() }.to_json()).expect("JSON")
}

fn is_refused(problem: &Value, member: &str, words: &str) {
    assert_eq!(problem["member"], member, "{problem}");
    assert!(problem["detail"].as_str().expect("a detail").contains(words), "{words}: {problem}");
    assert!(problem["hint"].as_str().expect("a hint").contains("--lax-json"), "{problem}");
}

#[test]
fn such_payloads_are_refused_in_every_call() {
    let served = Served::memory();
    served.expect(201, "PUT", "/v1/queues/q/tasks/live", r#"{"delay":"1h"}"#);
    for (payload, member, words) in ODD {
        let body = format!(r#"{{"payload":{payload}}}"#);
        is_refused(&served.expect(400, "PUT", "/v1/queues/q/tasks/a", &body), member, words);
        is_refused(&served.expect(400, "POST", "/v1/queues/q/tasks", &body), member, words);
        is_refused(&served.expect(400, "PATCH", "/v1/queues/q/tasks/live", &body), member, words);
        let schedule = format!(r#"{{"every":"1h","payload":{payload}}}"#);
        is_refused(&served.expect(400, "PUT", "/v1/queues/q/schedules/s", &schedule), member, words);
        let plan = format!(r#"{{"timeline":[{{"at_ms":1}},{{"at_ms":9000000000000,"payload":{payload}}}]}}"#);
        let member_of_plan = format!("timeline[1].{member}");
        for (method, path) in [("PUT", "/v1/queues/q/tasks/a"), ("PATCH", "/v1/queues/q/tasks/live")] {
            is_refused(&served.expect(400, method, path, &plan), &member_of_plan, words);
        }
        // With this content type, too, the payload would be delivered as JSON.
        let packed = in_base64(payload).replace("text/plain", "application/json");
        is_refused(&served.expect(400, "PUT", "/v1/queues/q/tasks/a", &packed), member, words);
    }
    let long = format!(r#"{{"payload":[{}]}}"#, "7".repeat(1_001));
    let refused = served.expect(400, "PUT", "/v1/queues/q/tasks/a", &long);
    is_refused(&refused, "payload[0]", "has 1001 digits, the limit is 1000");
    assert_eq!(served.counts("q"), [1, 0, 0], "nothing was done");
    served.expect(201, "PUT", "/v1/queues/q/tasks/text", &in_base64("1e400"));
}

#[test]
fn in_a_batch_only_the_line_is_refused() {
    let served = Served::memory();
    let lines = [
        r#"{"op":"put","key":"a","payload":1e-400}"#,
        r#"{"op":"put","key":"b","payload":{"x":1e400}}"#,
        r#"{"op":"patch","key":"a","payload":"\udc00"}"#,
        r#"{"op":"put","key":"c","payload":9007199254740993}"#,
    ];
    let results = served.call("POST", "/v1/queues/q/batch", &lines.join("\n")).lines();
    let status: Vec<u64> = results.iter().map(|line| line["status"].as_u64().expect("a status")).collect();
    assert_eq!(status, [201, 400, 400, 201]);
    assert_eq!((&results[1]["key"], &results[2]["key"]), (&json!("b"), &json!("a")));
    is_refused(&results[1]["problem"], "payload.x", "`1e400` at byte 5");
    is_refused(&results[2]["problem"], "payload", r"`\udc00` at byte 1");
}

#[test]
fn a_lax_server_takes_and_delivers_such_payloads_unchanged() {
    let served = Served::start(Config { lax_json: true, ..virtual_memory() }).expect("started");
    for (index, (payload, ..)) in ODD.iter().enumerate() {
        let body = format!(r#"{{"payload":{payload}}}"#);
        assert_eq!(
            served.call("PUT", &format!("/v1/queues/q/tasks/{index}"), &body).status,
            201,
            "{payload}"
        );
    }
    // Such a payload breaks strict readers, so the answer is not compared with the description.
    let mut connection = served.connect();
    connection
        .send(b"POST /v1/queues/q/lease HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{\"max\":9}");
    let leased = connection.reply();
    for (payload, ..) in ODD {
        assert!(leased.text().contains(&format!(r#""payload":{payload},"#)), "{payload}: {}", leased.text());
    }
}

/// A line of an export, with this text as the payload of its task.
fn marked_line(key: &str, payload: &str) -> String {
    let packed = in_base64(payload).replace("text/plain", "application/json");
    let members = packed.strip_prefix('{').and_then(|packed| packed.strip_suffix('}')).expect("an object");
    format!(
        r#"{{"task":{{"queue":"q","key":"{key}","id":1,"due_at":"1970-01-01T00:00:00Z","put_at":"1970-01-01T00:00:00Z",{members},"payload_invalid":true}}}}"#
    )
}

/// The story: a store held payloads of the type `application/json` that were never checked. No client could read a lease or a list that had
/// one of them, and the import refused the export of the store.
#[test]
fn stored_payloads_that_some_readers_cannot_read_are_answered_in_base64() {
    let mut payloads: Vec<&str> = ODD.iter().map(|(payload, ..)| *payload).collect();
    payloads.push("{");
    let source = Served::memory();
    let header = source.call("GET", "/v1/export", "").text();
    let header = header.lines().next().expect("a header");
    let lines: Vec<String> = payloads
        .iter()
        .enumerate()
        .map(|(index, payload)| {
            marked_line(&index.to_string(), payload).replace(r#""id":1"#, &format!(r#""id":{}"#, index + 1))
        })
        .collect();
    let imports = |served: &Served, text: &str| {
        let done = served.call("POST", "/v1/import", text).lines().pop().expect("an end");
        assert_eq!(done["end"].get("problem").unwrap_or(&Value::Null), &Value::Null, "{done}");
    };
    imports(&source, &format!("{header}\n{}\n", lines.join("\n")));
    // Without the mark, the line is refused as a put is.
    let bare = marked_line("bare", "1e400").replace(r#","payload_invalid":true"#, "");
    let refused =
        source.call("POST", "/v1/import", &format!("{header}\n{bare}\n")).lines().pop().expect("an end");
    is_refused(&refused["end"]["problem"], "task.payload", "`1e400` at byte 0");

    // The export goes into another server as it is, and has equal lines there.
    let tasks = |served: &Served| -> Vec<String> {
        let text = served.call("GET", "/v1/export", "").text();
        text.lines().filter(|line| line.starts_with(r#"{"task""#)).map(str::to_owned).collect()
    };
    let target = Served::memory();
    imports(&target, &source.call("GET", "/v1/export", "").text());
    assert_eq!(tasks(&target).len(), payloads.len());
    let marks = |line: &String| line.contains(r#""payload_invalid":true"#);
    assert!(tasks(&target).iter().all(marks) && tasks(&source).iter().all(marks), "{:?}", tasks(&target));

    for (index, payload) in payloads.iter().enumerate() {
        let got = target.call("GET", &format!("/v1/queues/q/tasks/{index}"), "");
        assert_eq!(got.json()["payload_invalid"], true, "{}", got.text());
        let read: TaskBody = serde_json::from_str(&got.text()).expect("a task");
        assert_eq!(read.payload, Some(PayloadBody::json(payload.as_bytes().to_vec())));
    }
    let listed = target.expect(200, "GET", "/v1/queues/q/tasks", "");
    assert!(listed["tasks"].as_array().expect("tasks").iter().all(|task| task["payload_invalid"] == true));
    let leased = target.call("POST", "/v1/queues/q/lease", r#"{"max":9}"#);
    assert!(
        leased.json()["tasks"].as_array().expect("tasks").iter().all(|task| task["payload_invalid"] == true)
    );
    let leased: LeasedTasks = serde_json::from_str(&leased.text()).expect("leases");
    let mut found: Vec<Vec<u8>> = leased.tasks.into_iter().map(|task| task.payload.bytes).collect();
    found.sort();
    payloads.sort_unstable();
    assert_eq!(found, payloads.iter().map(|payload| payload.as_bytes().to_vec()).collect::<Vec<_>>());
}

/// The story: rows were written into the inbox past the functions of the database, with JSON that workers cannot read. They end among the
/// refused rows with the reason, and the good row beside them becomes a task.
#[test]
fn a_row_of_the_inbox_with_such_a_payload_is_refused_with_the_reason() {
    let Some(database) = postgres::shared().map(postgres::Server::database) else { return };
    let store =
        Store::Postgres(PostgresPlan { url: database.url(), node: "first".to_owned(), migrate: true });
    let served = Served::start(Config { shards: Some(3), ..on_any_port(store) }).expect("started");
    until("it has the shards", || served.call("GET", "/readyz", "").status == 200);
    let by_hand = |key: &str, payload: &str| {
        let row = format!(
            "INSERT INTO tickwheel.inbox (shard, op, queue, key, due_at, payload, content_type, put_at) VALUES
             (tickwheel.shard_of('q'), 1, 'q', '{key}', 0, convert_to($payload${payload}$payload$, 'UTF8'), 'application/json', 0)"
        );
        database.psql(&row);
    };
    for (index, (payload, ..)) in ODD.iter().enumerate() {
        by_hand(&format!("odd-{index}"), payload);
    }
    by_hand("no-json", "{");
    by_hand("good", r#"{"a":1}"#);
    until("the rows are over", || database.psql("SELECT count(*) FROM tickwheel.inbox") == "0");
    let reason =
        |key: &str| database.psql(&format!("SELECT reason FROM tickwheel.inbox_refused WHERE key = '{key}'"));
    for (index, (_, member, words)) in ODD.iter().enumerate() {
        let reason = reason(&format!("odd-{index}"));
        assert!(reason.contains(member) && reason.contains(words), "{member}: {words}: {reason}");
    }
    assert!(reason("no-json").contains("`payload`"), "{}", reason("no-json"));
    assert_eq!(served.lease("q", 9).len(), 1, "the good row is a task");
    served.stop();
}
