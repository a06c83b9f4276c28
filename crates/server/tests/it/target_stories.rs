//! `GET .../story` of tasks that wait for the target of their queue. These servers run on real time, because a target is a network away.

use std::net::{SocketAddr, TcpListener};

use serde_json::{Value, json};
use tickwheel_server::{Config, PushPlan, Store};

use crate::receiver::Receiver;
use crate::served::{Served, on_any_port, until};

const TARGET: &str = "/v1/queues/close/target";

fn story(served: &Served, key: &str) -> Value {
    served.expect(200, "GET", &format!("/v1/queues/close/tasks/{key}/story"), "")
}

fn why(story: &Value) -> &str {
    story["why"].as_str().expect("sentences")
}

/// Asks until the answer has all these parts, and returns the story.
#[track_caller]
fn says(served: &Served, key: &str, parts: &[&str]) -> Value {
    let mut told = story(served, key);
    until(&format!("{parts:?} is said of {key}: {}", why(&told)), || {
        told = story(served, key);
        parts.iter().all(|part| why(&told).contains(part))
    });
    told
}

fn open(address: SocketAddr) -> PushPlan {
    PushPlan { allow: vec![address.to_string().parse().expect("a place")], ..PushPlan::default() }
}

fn served(address: SocketAddr) -> Served {
    Served::start(Config { push: open(address), ..on_any_port(Store::Memory) }).expect("started")
}

fn webhook(address: SocketAddr, more: Value) -> String {
    let mut target = json!({ "kind": "webhook", "url": format!("http://{address}/hooks?k=hidden") });
    target.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    target.to_string()
}

/// The instant behind these words (ms since 1970).
#[track_caller]
fn instant(text: &str, before: &str) -> i64 {
    let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{before:?} is said: {text}"));
    tickwheel_api::time::parse(&rest[..24]).expect("an instant")
}

fn put(served: &Served, key: &str) {
    served.expect(201, "PUT", &format!("/v1/queues/close/tasks/{key}"), r#"{"payload":{"order":1}}"#);
}

fn given_back(served: &Served) -> u64 {
    served.expect(200, "GET", TARGET, "")["attempts"]["given_back"].as_u64().expect("a count")
}

#[test]
fn a_target_that_cannot_be_reached_is_named_with_its_next_try() {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], tickwheel_testing::free_port()));
    let served = served(nowhere);
    let breaker = json!({ "breaker": { "failures": 1, "open": "1h" } });
    served.expect(201, "PUT", TARGET, &webhook(nowhere, breaker));
    put(&served, "order:1");
    let named = format!("The target of its queue, `webhook http://{nowhere}/hooks`, is `open` since 2");
    let parts = [
        "The task has been due for ",
        ", and it is the next in line.",
        &named,
        "onnection refused",
        "Nothing is sent until the next try at 2",
        "Z, in 59m, and `tickwheel target resume close` makes the server try at once.",
        "The last attempt to send the task failed at 2",
        " for that reason. It does not count, because it is the target that failed.",
    ];
    let told = says(&served, "order:1", &parts);
    assert!(!told.to_string().contains("hidden") && !why(&told).contains("worker"), "{told}");
    let target = &told["target"];
    assert_eq!(
        (&target["queue"], &target["kind"], &target["state"]),
        (&json!("close"), &json!("webhook"), &json!("open"))
    );
    assert!(target["next_try"].as_str() > target["since"].as_str(), "{target}");
    assert_eq!(
        (&told["last_attempt"]["outcome"], &told["last_attempt"]["attempt"]),
        (&json!("given_back"), &json!(1))
    );
    assert!(served.expect(200, "GET", TARGET, "")["next_try"].is_string());
    assert!(served.expect(200, "GET", "/v1/targets", "")["targets"][0]["next_try"].is_string());
    // The sentence promises that a resume does not wait for the hour.
    let before = given_back(&served);
    served.expect(200, "POST", &format!("{TARGET}/resume"), "");
    until("the target is tried again", || given_back(&served) > before);
    // The queue itself comes first, and the target is named beside it.
    served.expect(200, "POST", "/v1/queues/close/pause", "");
    says(
        &served,
        "order:1",
        &["its queue is paused until `tickwheel queues resume close`. The target of its queue", "is `open`"],
    );
    served.expect(200, "POST", "/v1/queues/close/resume", "");
    put(&served, "order:2");
    let told = says(&served, "order:2", &["1 task may be ahead of it. The target of its queue", "is `open`"]);
    assert!(told.get("last_attempt").is_none(), "{told}");
    served.expect(200, "POST", &format!("{TARGET}/pause"), "");
    let told = says(
        &served,
        "order:1",
        &["is `paused`, at least since 2", "Nothing is sent until `tickwheel target resume close`."],
    );
    assert!(told["target"].get("next_try").is_none(), "{told}");
    served.expect(200, "DELETE", TARGET, "");
    let told = says(&served, "order:1", &["no worker asks for tasks of its queue."]);
    assert!(told.get("target").is_none() && told.get("last_attempt").is_none(), "{told}");
}

#[test]
fn a_target_that_is_disabled_says_what_enables_it() {
    use base64::Engine as _;
    let receiver = Receiver::start(&["410 Gone"]);
    let folder = tempfile::tempdir().expect("a folder");
    let keys = folder.path().join("keys");
    let start = |has_key: bool| {
        let key = base64::engine::general_purpose::STANDARD.encode([if has_key { 1 } else { 2 }; 32]);
        std::fs::write(&keys, key).expect("a file");
        let push = PushPlan { secret_key_file: Some(keys.clone()), ..open(receiver.address) };
        Served::start(Config { push, ..on_any_port(Store::Dir(folder.path().join("data"))) })
            .expect("started")
    };
    let served = start(true);
    let auth = json!({ "auth": { "bearer": "hidden-token" } });
    served.expect(201, "PUT", TARGET, &webhook(receiver.address, auth));
    put(&served, "order:1");
    let resume = "Nothing is sent until `tickwheel target resume close`.";
    says(
        &served,
        "order:1",
        &["is `disabled`, at least since 2", ": `http 410`. ", resume, "for that reason."],
    );
    served.expect(201, "PUT", "/v1/queues/close/tasks/later", r#"{"delay":"1h"}"#);
    says(&served, "later", &["The task is due at 2", "is `disabled`", resume]);
    served.expect(200, "POST", &format!("{TARGET}/pause"), "");
    served.stop();

    let served = start(false);
    put(&served, "order:2");
    let told = says(
        &served,
        "order:2",
        &[
            "is `disabled`, at least since 2",
            "a secret cannot be read: ",
            "The server cannot send to it: start it with what it lacks, or set the target anew with all its options (`tickwheel target set close`).",
        ],
    );
    assert!(!why(&told).contains("target resume"), "a resume would be refused: {told}");
    served.stop();

    let served = start(true);
    served.expect(200, "POST", &format!("{TARGET}/resume"), "");
    let done = format!(
        "The task is done. The target of its queue, `webhook http://{}/hooks`, confirmed a task with this key at 2",
        receiver.address
    );
    let told = says(&served, "order:2", &[&done]);
    assert_eq!(
        (&told["events"][0]["what"], &told["last_attempt"]["outcome"]),
        (&json!("done"), &json!("acked"))
    );
    let off = json!({ "enabled": false, "auth": { "bearer": { "set": true } } });
    served.expect(200, "PUT", TARGET, &webhook(receiver.address, off));
    put(&served, "order:3");
    says(&served, "order:3", &["is `disabled`, at least since 2", "`'enabled' is false`", resume]);
    served.stop();
}

#[test]
fn a_target_that_works_says_how_many_messages_are_under_way() {
    // The system takes the connection, and nothing answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    let served = served(address);
    served.expect(201, "PUT", TARGET, &webhook(address, json!({ "concurrency": 1, "timeout": "5m" })));
    put(&served, "order:1");
    let named = format!(
        "to send it to the target of its queue, `webhook http://{address}/hooks`: this is attempt 1, under way since 2"
    );
    let ends = "Z, at the latest until 2";
    let told = says(
        &served,
        "order:1",
        &["The server has the task in hand since 2", &named, ends, "Z (`timeout`)."],
    );
    let [since, until] =
        ["under way since ", "at the latest until "].map(|before| instant(why(&told), before));
    assert_eq!(until - since, 300_000, "the time-out is 5 min: {told}");
    put(&served, "order:2");
    put(&served, "order:3");
    says(
        &served,
        "order:3",
        &[
            ": 1 task may be ahead of it.",
            "has 1 of 1 messages under way (`concurrency`), and the task waits for its turn.",
        ],
    );
    served.expect(200, "PATCH", "/v1/queues/close", r#"{"max_in_flight":1}"#);
    says(
        &served,
        "order:3",
        &["its queue has 1 of 1 tasks in flight (`max_in_flight`). The target", "takes messages."],
    );
}

#[test]
fn a_failed_attempt_says_its_reason() {
    let receiver = Receiver::start(&["500 No"]);
    let served = served(receiver.address);
    served.expect(201, "PUT", TARGET, &webhook(receiver.address, json!({ "dead_on": [422] })));
    put(&served, "order:1");
    says(
        &served,
        "order:1",
        &[
            "Attempt 1 failed with the reason `http 500",
            "and the task is due again at 2",
            "It goes to the target of its queue, `webhook http://",
            "`tickwheel run close order:1` sends it now.",
        ],
    );
    receiver.answer(&["422 No"]);
    served.expect(200, "POST", "/v1/queues/close/tasks/order:1/run", "");
    let told =
        says(&served, "order:1", &["The task is dead: the target of the queue refused it for good at 2"]);
    assert!(why(&told).contains("Z with the reason `http 422"), "{told}");
    assert_eq!(told["last_attempt"]["status"], 422);
}

#[test]
fn an_order_says_which_task_holds_up_the_others() {
    let receiver = Receiver::start(&["500 No"; 3]);
    let served = served(receiver.address);
    let retry = json!({ "max_attempts": 9, "backoff": "fixed", "base": "1h", "jitter": 0 });
    served.expect(
        201,
        "PUT",
        TARGET,
        &webhook(receiver.address, json!({ "order": "queue", "retry": retry })),
    );
    put(&served, "order:1");
    let tried = [
        "The server has the task in hand since 2",
        "/hooks`. Attempt 1 failed at 2",
        "Z: `http 500`, and attempt 2 is due at 2",
        "Z, in 59m, before later tasks of its order.",
    ];
    says(&served, "order:1", &tried);
    put(&served, "order:2");
    let waits = [
        "The task is ready, but the target keeps the order of its queue (`order`), and the task `order:1` comes first: its attempt 1 failed at 2",
        "Z, and attempt 2 is due at 2",
        "Z, in 59m. The target of its queue, `webhook http://",
        "/hooks`, takes messages. Its last failure: `http 500`.",
    ];
    says(&served, "order:2", &waits);
    // A pause gives back what is in hand.
    served.expect(200, "POST", &format!("{TARGET}/pause"), "");
    says(
        &served,
        "order:1",
        &["is `paused`", "The last attempt to send the task failed at 2", " for that reason."],
    );
}

#[test]
fn a_group_in_order_waits_for_its_task_in_hand_and_not_for_a_limit() {
    let receiver = Receiver::start(&["500 No", "500 No"]);
    let served = served(receiver.address);
    let retry = json!({ "max_attempts": 9, "backoff": "fixed", "base": "1h", "jitter": 0 });
    let target = json!({ "order": "group", "retry": retry });
    served.expect(201, "PUT", TARGET, &webhook(receiver.address, target));
    let put = |key: &str, group: &str| {
        let task = json!({ "group": group }).to_string();
        served.expect(201, "PUT", &format!("/v1/queues/close/tasks/{key}"), &task);
    };
    put("a:1", "a");
    says(&served, "a:1", &["Attempt 1 failed at 2", "and attempt 2 is due at 2"]);
    put("a:2", "a");
    let told = says(
        &served,
        "a:2",
        &[
            "The task is ready, but the target keeps the order of its group `a` (`order`), and the task `a:1` comes first: its attempt 1 failed",
            "Z, and attempt 2 is due at 2",
            "Z, in 59m. The target of its queue",
        ],
    );
    assert!(!why(&told).contains("max_in_flight"), "the target has set the limit: {told}");
    // A worker may have the task of the group as well.
    served.expect(200, "POST", &format!("{TARGET}/pause"), "");
    put("b:1", "b");
    put("b:2", "b");
    says(&served, "a:1", &["The task has been due for"]);
    served.expect(200, "POST", "/v1/queues/close/lease", r#"{"max":10}"#);
    let told = says(
        &served,
        "b:2",
        &[
            "keeps the order of its group `b` (`order`), and another task of the group is in flight: a worker has it,",
        ],
    );
    assert!(!why(&told).contains("comes first"), "{told}");
}

#[test]
fn a_task_that_is_tried_in_hand_tells_the_attempt_that_the_target_was_told() {
    let receiver = Receiver::start(&["500 No"; 3]);
    let served = served(receiver.address);
    let retry = json!({ "max_attempts": 3, "base": "500ms", "jitter": 0 });
    let target = json!({ "order": "queue", "retry": retry });
    served.expect(201, "PUT", TARGET, &webhook(receiver.address, target));
    put(&served, "order:1");
    let told = says(&served, "order:1", &["Attempt 2 failed at 2", "and attempt 3 is due at 2"]);
    assert_eq!(told["last_attempt"]["attempt"], 2, "{told}");
    says(
        &served,
        "order:1",
        &["The task is dead: attempt 3, the last one that its retry policy allows, failed at 2"],
    );
    let attempts: Vec<_> =
        receiver.requests().iter().map(|request| request.header("tickwheel-attempt").to_owned()).collect();
    assert_eq!(attempts, ["1", "2", "3"]);
}

#[test]
fn a_retry_in_hand_tells_its_number_and_the_failure_before_it() {
    let receiver = Receiver::start(&["500 No", "hang"]);
    let served = served(receiver.address);
    let retry = json!({ "max_attempts": 3, "backoff": "fixed", "base": "10ms", "jitter": 0 });
    let target = json!({ "order": "queue", "retry": retry, "timeout": "5m" });
    served.expect(201, "PUT", TARGET, &webhook(receiver.address, target));
    put(&served, "order:1");
    let told = says(
        &served,
        "order:1",
        &[": this is attempt 2, under way since 2", "(`timeout`). Attempt 1 failed at 2"],
    );
    put(&served, "order:2");
    says(&served, "order:2", &["and the task `order:1` comes first: its attempt 2 is under way since 2"]);
    assert!(why(&told).ends_with("Z: `http 500`."), "{told}");
}

#[test]
fn a_target_that_asks_for_silence_is_said_to_have_asked() {
    let receiver = Receiver::start(&["429 Slow down\r\nretry-after: 3600"]);
    let served = served(receiver.address);
    served.expect(201, "PUT", TARGET, &webhook(receiver.address, json!({})));
    put(&served, "order:1");
    let told = says(
        &served,
        "order:1",
        &[
            "is `open` since 2",
            "Z, because it asked for silence until 2",
            "Z (`Retry-After`). Its last failure: `http 429, retry after 1h`. Nothing is sent until then, in 59m, and `tickwheel target \
             resume close` makes the server try at once.",
        ],
    );
    assert_eq!(told["target"]["reason"], "http 429, retry after 1h");
    let next_try =
        tickwheel_api::time::parse(told["target"]["next_try"].as_str().expect("open")).expect("an instant");
    assert!((next_try - instant(why(&told), "silence until ")).abs() < 1_000, "{told}");
}

#[test]
fn a_worker_with_the_name_of_the_server_is_a_worker() {
    let nowhere = SocketAddr::from(([127, 0, 0, 1], tickwheel_testing::free_port()));
    let served = served(nowhere);
    served.expect(201, "PUT", TARGET, &webhook(nowhere, json!({ "enabled": false })));
    put(&served, "order:1");
    served.expect(200, "POST", "/v1/queues/close/lease", r#"{"worker":"push","lease":"1h"}"#);
    let told = story(&served, "order:1");
    assert!(why(&told).starts_with("The worker `push` has the task since 2"), "{told}");
}
