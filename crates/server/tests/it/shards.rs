//! A server with several shards: the number is kept, a shard that fails is named, and the other ones go on.

use std::path::Path;

use serde_json::json;
use tickwheel_queue::{QueueName, Router};
use tickwheel_server::{Config, StartError, Store};

use crate::databases::is_left_out;
use crate::served::{Served, on_any_port, until};

const SHARDS: u32 = 3;

fn of(directory: &Path, shards: Option<u32>) -> Result<Served, StartError> {
    Served::start(Config { shards, ..on_any_port(Store::Dir(directory.to_owned())) })
}

/// The name of a queue of this shard.
fn queue_of(shard: u32) -> String {
    let router = Router::new(SHARDS).expect("a number of shards");
    let is_there = |name: &String| {
        let name = QueueName::new(name).expect("a name");
        router.of_queue(&name).number() == shard
    };
    (0..).map(|n| format!("q{n}")).find(is_there).expect("one of the names")
}

#[test]
fn a_directory_keeps_its_number_of_shards() {
    if is_left_out("it is about a directory") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let served = of(&data, Some(SHARDS)).expect("started");
    assert_eq!(served.metric("tickwheel_shards{state=\"ready\"}"), f64::from(SHARDS));
    served.stop();
    for wanted in [1, 2, 4] {
        let Err(refused) = of(&data, Some(wanted)) else { panic!("started with {wanted}") };
        let told = refused.to_string();
        assert!(told.contains(&format!("made with 3 shards, and was to be opened with {wanted}")), "{told}");
        assert!(told.contains("tickwheel export"), "{told}");
    }
    of(&data, Some(SHARDS)).expect("the same number").stop();
}

#[test]
fn a_shard_that_fails_is_named_and_the_others_go_on() {
    if is_left_out("a file of one shard is damaged") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let served = of(folder.path(), Some(SHARDS)).expect("started");
    let [first, failing, last] = [0, 1, 2].map(queue_of);
    let put = |queue: &str| served.call("POST", &format!("/v1/queues/{queue}/tasks"), "{}");
    for queue in [&first, &failing, &last] {
        assert_eq!(put(queue).status, 201);
    }
    // A store whose lock is gone takes no changes any more.
    std::fs::remove_file(folder.path().join("0001/lock")).expect("removed");
    until("the shard is read-only", || served.call("GET", "/readyz", "").status == 503);
    let ready = served.expect(503, "GET", "/readyz", "");
    let why = ready["read_only"].as_str().expect("a reason");
    assert!(why.starts_with("shard 1 of 3: ") && why.contains("lock"), "{ready}");
    assert_eq!((&ready["status"], &ready["why"]), (&json!("read_only"), &ready["read_only"]), "{ready}");
    assert_eq!(served.metric("tickwheel_read_only"), 1.0);
    for (state, count) in [("ready", 2.0), ("read_only", 1.0), ("not_ready", 0.0)] {
        assert_eq!(served.metric(&format!("tickwheel_shards{{state=\"{state}\"}}")), count, "{state}");
    }
    put(&failing).assert_problem(503, "read-only", "lock");
    for queue in [&first, &last] {
        assert_eq!(put(queue).status, 201);
        let leased = served.lease(queue, 2);
        assert_eq!(leased.len(), 2);
        assert_eq!(served.say(queue, "ack", &[&leased[0]["token"]]), ["acked"]);
    }
    // Reads go on in all shards.
    assert_eq!(served.counts(&failing), [0, 1, 0]);
    let all = served.expect(200, "GET", "/v1/queues", "");
    assert_eq!(all["queues"].as_array().map(Vec::len), Some(3), "{all}");
}
