//! Targets at a broker, here a real Redis: the way from the configuration to the confirmation.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tickwheel_api::TargetKind;
use tickwheel_server::{Config, ConnectionPlan, PushPlan, Store};

use crate::served::{Served, on_any_port, until};

/// A Redis on loopback. It ends when it is dropped.
struct Redis {
    port: u16,
    child: Child,
    folder: tempfile::TempDir,
}

impl Redis {
    /// Starts a Redis; `None`: it is not installed.
    fn start() -> Option<Self> {
        if !tickwheel_testing::has("redis-server", "apt-get install redis-server") {
            return None;
        }
        let port = tickwheel_testing::free_port();
        let folder = tempfile::tempdir().expect("a folder");
        let child = spawn(port, folder.path());
        Some(Self { port, child, folder })
    }

    fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    fn start_again(&mut self) {
        self.child = spawn(self.port, self.folder.path());
    }

    /// The number of entries of the stream `due`; `None`: the server is still reading its file.
    fn entries(&self) -> Option<u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.write_all(b"XLEN due\r\n").expect("it reads");
        let mut line = String::new();
        BufReader::new(stream).take(64).read_line(&mut line).expect("an answer");
        line.trim().strip_prefix(':')?.parse().ok()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn spawn(port: u16, folder: &std::path::Path) -> Child {
    let mut command = Command::new("redis-server");
    command.args([
        "--port",
        &port.to_string(),
        "--bind",
        "127.0.0.1",
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
    ]);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("redis starts");
    until("redis listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    child
}

#[test]
fn a_named_connection_carries_tasks_to_a_broker_and_an_outage_uses_up_no_attempt() {
    let Some(mut redis) = Redis::start() else { return };
    let address = format!("127.0.0.1:{}", redis.port);
    let connections = [
        ("main".to_owned(), ConnectionPlan::new(TargetKind::Redis, vec![address])),
        ("other".to_owned(), ConnectionPlan::new(TargetKind::Kafka, vec!["127.0.0.1:1".to_owned()])),
    ];
    let push = PushPlan { connections: connections.into(), ..PushPlan::default() };
    let served = Served::start(Config { push, ..on_any_port(Store::Memory) }).expect("started");
    let target = "/v1/queues/close/target";
    let refuse = |target_body: serde_json::Value, what: &str| {
        served.call("PUT", target, &target_body.to_string()).assert_problem(400, "bad-request", what);
    };
    refuse(json!({ "kind": "redis", "connection": "none", "stream": "due" }), "known are: `main`, `other`");
    let other = json!({ "kind": "redis", "connection": "other", "stream": "due" });
    refuse(other.clone(), "`other` is a connection of the kind `kafka`, and the target has the kind `redis`");
    refuse(other, "or name a connection of the kind `redis`: `main`");
    let absent = json!({ "kind": "beanstalk", "connection": "main", "tube": "due" });
    refuse(absent, "there is no connection of the kind `beanstalk`");
    refuse(
        json!({ "kind": "redis", "connection": "main", "stream": "due", "body": "cloudevents" }),
        "does not go with",
    );
    let unused = served.expect(200, "GET", "/v1/targets", "");
    assert_eq!(unused["connections"][0], json!({ "name": "main", "kind": "redis", "state": "unused" }));

    let breaker = json!({ "open": "10ms", "open_max": "50ms" });
    let body = json!({ "kind": "redis", "connection": "main", "stream": "due", "breaker": breaker });
    served.expect(201, "PUT", target, &body.to_string());
    let put = |key: &str| served.expect(201, "PUT", &format!("/v1/queues/close/tasks/{key}"), "{}");
    put("a");
    until("the message is in the stream", || redis.entries() == Some(1) && served.counts("close") == [0; 3]);
    let list = served.expect(200, "GET", "/v1/targets", "");
    assert_eq!(
        (&list["targets"][0]["to"], &list["connections"][0]["state"]),
        (&json!("main: due"), &json!("up"))
    );
    assert!(
        served
            .call("GET", "/metrics", "")
            .text()
            .contains(r#"tickwheel_push_connection_up{connection="main"} 1"#)
    );

    redis.kill();
    put("b");
    until("the connection is down, and the target waits", || {
        let list = served.expect(200, "GET", "/v1/targets", "");
        list["connections"][0]["state"] == "down"
            && list["targets"][0]["attempts"]["given_back"].as_u64() >= Some(3)
    });
    let down = served.expect(200, "GET", "/v1/targets", "")["connections"][0].clone();
    assert!(down["since"].is_string() && down["reason"].is_string(), "{down}");
    assert!(
        served
            .call("GET", "/metrics", "")
            .text()
            .contains(r#"tickwheel_push_connection_up{connection="main"} 0"#)
    );
    redis.start_again();
    until("the message arrives", || redis.entries() == Some(2) && served.counts("close") == [0; 3]);
    let view = served.expect(200, "GET", target, "");
    assert_eq!((&view["attempts"]["acked"], &view["attempts"]["failed"]), (&json!(2), &json!(0)), "{view}");
}
