//! `/v1/queues/{q}/target` and `/v1/targets`. These servers run on real time, because a target is a network away.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tickwheel_postgres::ClusterClock;
use tickwheel_server::{Config, PushPlan, SecretText, Store, Tokens};

use crate::databases;
use crate::receiver::Receiver;
use crate::served::{Served, on_any_port, until};

const TARGET: &str = "/v1/queues/close/target";

/// A plan that opens the place of a receiver.
pub(crate) fn open(receiver: &Receiver) -> PushPlan {
    PushPlan { allow: vec![receiver.address.to_string().parse().expect("a place")], ..PushPlan::default() }
}

fn served(push: PushPlan) -> Served {
    Served::start(Config { push, ..on_any_port(Store::Memory) }).expect("started")
}

pub(crate) fn webhook(receiver: &Receiver, more: Value) -> String {
    let mut target = json!({ "kind": "webhook", "url": receiver.url() });
    target.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    target.to_string()
}

fn put(served: &Served, key: &str) {
    served.expect(201, "PUT", &format!("/v1/queues/close/tasks/{key}"), r#"{"payload":{"order":1}}"#);
}

/// A file with the keys that have these bytes.
fn keys(folder: &Path, bytes: &[u8]) -> PathBuf {
    use base64::Engine as _;
    let line = |byte: &u8| base64::engine::general_purpose::STANDARD.encode([*byte; 32]) + "\n";
    let place = folder.join("keys");
    std::fs::write(&place, bytes.iter().map(line).collect::<String>()).expect("a file");
    place
}

#[test]
fn a_queue_with_a_target_needs_no_worker() {
    let receiver = Receiver::start(&[]);
    let served = served(open(&receiver));
    put(&served, "before");
    let made = served.call(
        "PUT",
        TARGET,
        &webhook(&receiver, json!({ "concurrency": 1, "headers": { "shop": "{group}" } })),
    );
    assert_eq!(made.status, 201, "{}", made.text());
    put(&served, "after");
    until("the first task lacks a group, so it is dead", || {
        let dead = served.expect(200, "GET", "/v1/queues/close/dead", "");
        dead["tasks"].as_array().is_some_and(|tasks| tasks.len() == 2 && tasks[0]["reason"] == "template")
    });
    assert!(receiver.requests().is_empty());
    let etag = made.header("etag").expect("a version").to_owned();
    served.call_with("PUT", TARGET, &[("if-match", "\"1\"")], &webhook(&receiver, json!({}))).assert_problem(
        412,
        "version-mismatch",
        "the target has version",
    );
    let plain = served.call_with("PUT", TARGET, &[("if-match", &etag)], &webhook(&receiver, json!({})));
    assert_eq!(plain.status, 200, "{}", plain.text());
    served.expect(201, "PUT", "/v1/queues/close/tasks/order:1", r#"{"payload":{"order":1}}"#);
    until("the task is delivered", || receiver.requests().len() == 1);
    let request = receiver.requests().remove(0);
    assert_eq!(request.line, "POST /hooks/close?k=order%3A1 HTTP/1.1");
    assert_eq!(
        (request.body.as_slice(), request.header("tickwheel-attempt")),
        (br#"{"order":1}"#.as_slice(), "1")
    );
    until("the task is done", || {
        served.call("GET", "/v1/queues/close/tasks/order:1", "").status == 404
            && served.counts("close") == [0; 3]
    });
    let view = served.expect(200, "GET", TARGET, "");
    assert_eq!(
        (&view["state"], &view["attempts"]["acked"], &view["attempts"]["dead"]),
        (&json!("closed"), &json!(1), &json!(2))
    );
    let list = served.expect(200, "GET", "/v1/targets", "");
    assert_eq!(list["targets"][0]["to"], json!(format!("http://{}/hooks/{{queue}}", receiver.address)));
    let attempts = served.expect(200, "GET", &format!("{TARGET}/attempts?limit=1"), "");
    assert_eq!(attempts["attempts"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&attempts["attempts"][0]["key"], &attempts["attempts"][0]["status"]),
        (&json!("order:1"), &json!(204))
    );
    let metrics = served.call("GET", "/metrics", "").text();
    for line in [
        r#"tickwheel_push_total{queue="close",kind="webhook",outcome="acked"} 1"#,
        r#"tickwheel_push_seconds_count{kind="webhook"} 3"#,
        r#"tickwheel_push_lateness_seconds_count{kind="webhook"} 1"#,
        r#"tickwheel_target_state{queue="close",state="closed"} 1"#,
        r#"tickwheel_push_in_flight{queue="close"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    assert_eq!(served.expect(200, "DELETE", TARGET, "")["result"], "deleted");
    served.call("GET", TARGET, "").assert_problem(404, "no-target", "close");
    put(&served, "later");
    assert_eq!(served.counts("close"), [0, 1, 0], "nothing sends the task any more");
}

#[test]
fn an_address_of_the_own_network_is_refused_at_once_and_so_is_a_broken_target() {
    let receiver = Receiver::start(&[]);
    let served = served(open(&receiver));
    let refuse = |target: Value, what: &str| {
        served.call("PUT", TARGET, &target.to_string()).assert_problem(400, "bad-request", what);
    };
    let url = |url: &str| json!({ "kind": "webhook", "url": url });
    refuse(url("http://127.0.0.1:1/"), "blocked address");
    refuse(url("http://localhost:1/"), "localhost is 127.0.0.1 (this machine)");
    refuse(url("https://localhost:1/"), "localhost is 127.0.0.1 (this machine)");
    refuse(url("http://hooks.example:1/"), "http is allowed only for places that an operator opened");
    for place in ["169.254.169.254", "168.63.129.16", "[::ffff:10.0.0.1]", "2130706433", "0x7f.1"] {
        refuse(url(&format!("https://{place}/latest")), "blocked address");
    }
    refuse(url("ftp://shop.example/"), "`url`");
    refuse(url("https://shop.example/{nothing}"), "`{nothing}` is no value of a task");
    refuse(url("https://shop.example/hooks/%2e./admin"), "so `%2e.` leads to another path");
    refuse(
        json!({ "kind": "webhook", "url": receiver.url(), "headers": { "host": "x" } }),
        "`host` is set by Tickwheel",
    );
    refuse(
        json!({ "kind": "webhook", "url": receiver.url(), "tls": { "ca": "none" } }),
        "names certificates",
    );
    refuse(
        json!({ "kind": "webhook", "url": receiver.url(), "auth": { "bearer": { "name": "none" } } }),
        "has no secret `none`",
    );
    refuse(
        json!({ "kind": "webhook", "url": receiver.url(), "auth": { "bearer": { "set": true } } }),
        "does not have",
    );
    served.call("GET", TARGET, "").assert_problem(404, "no-target", "close");
    for (method, below) in
        [("POST", "pause"), ("POST", "resume"), ("POST", "rotate"), ("POST", "test"), ("GET", "attempts")]
    {
        served.call(method, &format!("{TARGET}/{below}"), "").assert_problem(404, "no-target", "close");
    }
    served.call("PUT", "/v1/queues/close", r#"{"webhook":{}}"#).assert_problem(
        400,
        "bad-request",
        "`webhook`",
    );
}

#[test]
fn secrets_are_stored_under_a_key_and_never_shown() {
    let receiver = Receiver::start(&[]);
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let start = |keys: Option<PathBuf>| {
        let secrets =
            [("orders".to_owned(), SecretText("whsec_T3JkZXJzT3JkZXJzT3JkZXJzT3JkZXJz".to_owned()))];
        let push = PushPlan { secret_key_file: keys, secrets: secrets.into(), ..open(&receiver) };
        Served::start(Config { push, ..on_any_port(Store::Dir(data.clone())) }).expect("started")
    };
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let signing = json!({ "signing": [{ "secret": secret }, { "secret": { "name": "orders" } }], "auth": { "bearer": "hidden-token" } });
    let inline = webhook(&receiver, signing);
    let served = start(None);
    served.call("PUT", TARGET, &inline).assert_problem(409, "no-secret-key", "`signing[0].secret`");
    served.stop();

    let served = start(Some(keys(folder.path(), &[1])));
    let view = served.expect(201, "PUT", TARGET, &inline);
    let id = view["signing"][0]["secret"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(view["auth"], json!({ "bearer": { "set": true } }));
    put(&served, "signed");
    until("the task is delivered", || receiver.requests().len() == 1);
    let request = receiver.requests().remove(0);
    assert!(
        request.is_signed_with(secret) && request.is_signed_with("whsec_T3JkZXJzT3JkZXJzT3JkZXJzT3JkZXJz")
    );
    assert_eq!(request.header("authorization"), "Bearer hidden-token");
    // A change of another member keeps the secrets by what GET shows.
    let kept = json!({ "signing": [{ "secret": { "set": true, "id": id } }], "auth": { "bearer": { "set": true } }, "concurrency": 2 });
    served.expect(200, "PUT", TARGET, &webhook(&receiver, kept));
    let rotated = served.expect(200, "POST", &format!("{TARGET}/rotate"), r#"{"overlap":"1h"}"#);
    let new = rotated["secret"].as_str().expect("a secret").to_owned();
    put(&served, "rotated");
    until("the task is delivered", || receiver.requests().len() == 2);
    let request = receiver.requests().remove(1);
    assert!(request.is_signed_with(secret) && request.is_signed_with(&new), "both sign for an hour");
    let view = served.expect(200, "GET", TARGET, "");
    assert_eq!(view["signing"][0]["secret"]["id"], rotated["id"]);
    assert_eq!(view["signing"][1]["until"], rotated["until"]);
    served.expect(200, "POST", &format!("{TARGET}/rotate"), r#"{"overlap":"0s"}"#);
    let only = served.expect(200, "GET", TARGET, "")["signing"].as_array().map(Vec::len);
    assert_eq!(only, Some(1), "without an overlap the others end at once");
    served.stop();
    let parts = databases::kept(&data);
    let has =
        |text: &str| parts.iter().any(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()));
    assert!(has("127.0.0.1"), "the target is kept there");
    for hidden in [secret.trim_start_matches("whsec_"), "hidden-token", new.trim_start_matches("whsec_")] {
        assert!(!has(hidden), "{hidden}");
    }

    let served = start(Some(keys(folder.path(), &[2])));
    put(&served, "waits");
    let view = served.expect(200, "GET", TARGET, "");
    assert_eq!(view["state"], "disabled");
    assert!(view["reason"].as_str().is_some_and(|why| why.contains("--secret-key-file")), "{view}");
    let elsewhere =
        json!({ "kind": "webhook", "url": "https://evil.example/", "auth": { "bearer": { "set": true } } });
    served.call("PUT", TARGET, &elsewhere.to_string()).assert_problem(400, "bad-request", "another place");
    served.call("POST", &format!("{TARGET}/resume"), "").assert_problem(
        409,
        "no-secret-key",
        "cannot be read",
    );
    served.call("POST", &format!("{TARGET}/rotate"), "").assert_problem(
        409,
        "no-secret-key",
        "cannot be read",
    );
    assert_eq!(served.counts("close"), [0, 1, 0], "the task stays ready");
    served.stop();
    // The targets begin beside the doors, and each first gets its secrets under the new key.
    let served = start(Some(keys(folder.path(), &[2, 1])));
    until("the task is delivered", || receiver.requests().len() == 3);
    served.stop();
    let served = start(Some(keys(folder.path(), &[2])));
    put(&served, "new-key");
    until("a task is delivered without the old key", || receiver.requests().len() == 4);
    assert_eq!(receiver.requests()[3].header("authorization"), "Bearer hidden-token");
    served.stop();
}

#[test]
fn an_answer_that_disables_a_target_outlives_a_restart() {
    let receiver = Receiver::start(&["410 Gone"]);
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let store = Store::Dir(folder.path().join("data"));
        Served::start(Config { push: open(&receiver), ..on_any_port(store) }).expect("started")
    };
    let served = start();
    served.expect(201, "PUT", TARGET, &webhook(&receiver, json!({})));
    let etag = |served: &Served| served.call("GET", TARGET, "").header("etag").map(str::to_owned);
    let before = etag(&served);
    put(&served, "gone");
    until("the target is disabled, and that is stored", || {
        served.expect(200, "GET", TARGET, "")["state"] == "disabled" && etag(&served) != before
    });
    // A call that leased tasks before may get the task once more, and gives it back.
    until("the task is given back", || served.counts("close") == [0, 1, 0]);
    served.stop();
    let served = start();
    let view = served.expect(200, "GET", TARGET, "");
    assert_eq!(view["state"], "disabled");
    assert!(view["reason"].as_str().is_some_and(|why| why.contains("410")), "{view}");
    let paused = served.expect(200, "POST", &format!("{TARGET}/pause"), "");
    assert_eq!(paused["state"], "paused");
    assert_eq!(receiver.requests().len(), 1);
    let tested = served.expect(200, "POST", &format!("{TARGET}/test"), "");
    assert_eq!(
        (&tested["outcome"], &tested["status"]),
        (&json!("acked"), &json!(204)),
        "a test does not wait for the resume"
    );
    assert_eq!(receiver.requests()[1].body, br#"{"test":true}"#);
    assert_eq!(served.expect(200, "POST", &format!("{TARGET}/resume"), "")["state"], "closed");
    until("the task is delivered", || receiver.requests().len() == 3);
    receiver.answer(&["500 No"]);
    let tested = served.expect(200, "POST", &format!("{TARGET}/test"), "");
    assert_eq!((&tested["outcome"], &tested["status"]), (&json!("failed"), &json!(500)));
    served.stop();
}

#[test]
fn the_order_of_groups_needs_one_task_of_a_group_in_flight() {
    let receiver = Receiver::start(&[]);
    let served = served(open(&receiver));
    let group = webhook(&receiver, json!({ "order": "group" }));
    served.expect(200, "PUT", "/v1/queues/close", r#"{"max_in_flight_per_group":2,"max_backlog":9}"#);
    served.call("PUT", TARGET, &group).assert_problem(409, "order-conflict", "2 tasks of a group");
    served.expect(200, "PATCH", "/v1/queues/close", r#"{"max_in_flight_per_group":null}"#);
    served.expect(201, "PUT", TARGET, &group);
    let settings = served.expect(200, "GET", "/v1/queues/close", "");
    assert_eq!((&settings["max_in_flight_per_group"], &settings["max_backlog"]), (&json!(1), &json!(9)));
    let patch = r#"{"max_in_flight_per_group":3}"#;
    served.call("PATCH", "/v1/queues/close", patch).assert_problem(409, "order-conflict", "of 1");
    served.call("PUT", "/v1/queues/close", r#"{"max_backlog":3}"#).assert_problem(
        409,
        "order-conflict",
        "of 1",
    );
    served.expect(200, "PATCH", "/v1/queues/close", r#"{"max_backlog":3}"#);
    let export = served.call("GET", "/v1/export", "").text();
    let loose = export.replace(r#""max_in_flight_per_group":1"#, r#""max_in_flight_per_group":2"#);
    let imported = served.call("POST", "/v1/import?existing=replace", &loose).text();
    assert!(imported.contains("order-conflict"), "{imported}");
    let settings = served.expect(200, "GET", "/v1/queues/close", "");
    assert_eq!(settings["max_in_flight_per_group"], json!(1));
    served.expect(200, "PUT", TARGET, &webhook(&receiver, json!({})));
    served.expect(200, "PATCH", "/v1/queues/close", patch);
    served.expect(200, "DELETE", "/v1/queues/close", "");
    served.call("GET", TARGET, "").assert_problem(404, "no-target", "close");
    assert_eq!(served.expect(200, "GET", "/v1/targets", "")["targets"], json!([]));
}

#[test]
fn only_an_admin_changes_a_target_and_a_scope_hides_others() {
    let receiver = Receiver::start(&[]);
    let tokens = "boss\nreader rights=read scope=close\nlocal rights=admin,read scope=close";
    let tokens = Tokens::parse(tokens).expect("tokens");
    let config = Config { tokens, push: open(&receiver), ..on_any_port(Store::Memory) };
    let served = Served::start(config).expect("started");
    let call = |token: &str, method: &str, path: &str, body: &str| {
        served.call_with(method, path, &[("authorization", &format!("Bearer {token}"))], body)
    };
    let named = webhook(&receiver, json!({ "auth": { "bearer": { "name": "orders" } } }));
    call("local", "PUT", TARGET, &named).assert_problem(400, "bad-request", "the token has a scope");
    let target = webhook(&receiver, json!({ "headers": { "x-key": "hidden" } }));
    for queue in ["close", "other"] {
        assert_eq!(call("boss", "PUT", &format!("/v1/queues/{queue}/target"), &target).status, 201);
    }
    let seen = call("reader", "GET", TARGET, "");
    assert_eq!(seen.status, 200);
    assert!(!seen.text().contains("hidden") && !seen.text().contains("?k="), "{}", seen.text());
    assert_eq!(call("local", "GET", TARGET, "").json()["headers"]["x-key"], "hidden");
    let all = call("reader", "GET", "/v1/targets", "").json();
    assert_eq!(all["targets"].as_array().map(Vec::len), Some(1), "{all}");
    for (method, path) in [
        ("PUT", TARGET.to_owned()),
        ("DELETE", TARGET.to_owned()),
        ("POST", format!("{TARGET}/pause")),
        ("POST", format!("{TARGET}/resume")),
        ("POST", format!("{TARGET}/rotate")),
        ("POST", format!("{TARGET}/test")),
    ] {
        call("reader", method, &path, &target).assert_problem(403, "forbidden", "admin");
    }
    call("reader", "GET", "/v1/queues/other/target", "").assert_problem(404, "out-of-scope", "other");
}

/// Puts a record in the place of the target of the queue `close`, as a later version or damage would.
fn plant(directory: &Path, record: &[u8]) {
    let queue = databases::opened(directory, ClusterClock::Real);
    let close = tickwheel_queue::QueueName::new("close").expect("a name");
    let target = tickwheel_queue::TargetRecord { value: record.into(), retry: None };
    queue.change_target(&close, Some(target)).wait().expect("kept");
    queue.close();
}

#[test]
fn a_target_that_cannot_be_read_is_told_and_can_be_deleted_and_replaced() {
    let receiver = Receiver::start(&[]);
    let later = br#"{"target":{"kind":"kafka","topic":7,"loft":"hunter2"},"pause":"paused"}"#;
    for (record, why) in [
        (&later[..], "it has a member that this version does not know, or lacks one (line 1, column "),
        (b"\xff\x00hunter2", "it is not JSON (line 1, column "),
        (b"", "it is not JSON"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        plant(&data, record);
        let config = || Config { push: open(&receiver), ..on_any_port(Store::Dir(data.clone())) };
        let served = Served::start(config()).expect("started");
        until("the targets are started", || {
            let rows = served.expect(200, "GET", "/v1/targets", "");
            rows["targets"][0]["state"] == "disabled"
        });
        let row = served.expect(200, "GET", "/v1/targets", "")["targets"][0].clone();
        assert_eq!(row["kind"] == "kafka", record == later, "a kind that can be read is shown");
        let reason = row["reason"].as_str().expect("a reason");
        assert!(
            reason.contains(why) && reason.contains("It can be deleted, and it can be set anew"),
            "{reason}"
        );
        for (method, path) in [("GET", TARGET.to_owned()), ("POST", format!("{TARGET}/resume"))] {
            let told = served.expect(500, method, &path, "");
            let (detail, hint) =
                (told["detail"].as_str().expect("a text"), told["hint"].as_str().expect("a text"));
            assert!(detail.starts_with("the target of the queue `close` cannot be read: "), "{detail}");
            assert!(detail.contains(why) && !told.to_string().contains("hunter2"), "{told}");
            assert!(
                hint.contains("DELETE /v1/queues/{q}/target") && hint.contains("anew with a PUT"),
                "{hint}"
            );
        }
        put(&served, "waits");
        let story = served.expect(200, "GET", "/v1/queues/close/tasks/waits/story", "");
        let told = story["why"].as_str().expect("a text");
        assert!(told.contains("`tickwheel target set close` sets it anew"), "{told}");
        assert!(told.contains("`tickwheel target delete close`") && !told.contains("hunter2"), "{told}");
        served.call_with("DELETE", TARGET, &[("if-match", "\"1\"")], "").assert_problem(
            412,
            "version-mismatch",
            "the target has version",
        );
        served.expect(200, "DELETE", TARGET, "");
        served.expect(404, "GET", TARGET, "");
        assert_eq!(served.expect(200, "GET", "/v1/targets", "")["targets"], json!([]));
        served.stop();

        plant(&data, record);
        let served = Served::start(config()).expect("started");
        let view = served.expect(200, "PUT", TARGET, &webhook(&receiver, json!({})));
        if record == later {
            assert_eq!(view["state"], "paused", "a pause of an operator stays");
            served.expect(200, "POST", &format!("{TARGET}/resume"), "");
        }
        until("the task that waited is sent", || {
            served.expect(200, "GET", TARGET, "")["attempts"]["acked"] == json!(1)
        });
    }
}
