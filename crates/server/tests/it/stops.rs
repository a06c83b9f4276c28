//! A graceful stop.

use std::thread;

use serde_json::{Value, json};
use tickwheel_server::{Config, Store};

use crate::raw::Connection;
use crate::served::{Served, on_any_port};

#[test]
fn waiting_workers_are_answered_and_disconnected() {
    let mut served = Served::memory();
    thread::scope(|scope| {
        let addr = served.addr;
        let worker = scope.spawn(move || {
            let mut connection = Connection::to(addr);
            connection.request("POST", "/v1/queues/q/lease", &[], br#"{"wait":"60s"}"#);
            let reply = connection.reply();
            (reply.status, reply.json(), connection.is_closed())
        });
        served.await_waiting(1.0);
        served.tell_to_stop();
        assert_eq!(worker.join().expect("no panic"), (200, json!({"tasks": []}), true));
    });
    served.stop();
}

#[test]
fn a_call_under_way_is_finished_and_then_no_client_is_admitted() {
    let mut served = Served::memory();
    let mut idle = served.connect();
    idle.request("GET", "/healthz", &[], b"");
    assert_eq!(idle.reply().status, 200);
    let mut connection = served.connect();
    let head = format!(
        "PUT /v1/queues/q/tasks/a HTTP/1.1\r\nHost: {}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
        served.addr
    );
    connection.send(head.as_bytes());
    assert_eq!(connection.head().status, 100, "the call is under way");
    served.tell_to_stop();
    assert!(idle.is_closed(), "an idle connection is closed at once");
    connection.send(b"{}");
    let reply = connection.reply();
    assert_eq!(reply.status, 201, "{}", reply.text());
    assert_eq!(reply.header("connection"), Some("close"));
    let addr = served.addr;
    served.stop();
    assert!(std::net::TcpStream::connect(addr).is_err(), "the port is free");
}

#[test]
fn a_call_that_does_not_end_is_cut_off() {
    let grace = std::time::Duration::from_millis(50);
    let config = Config { stop_grace: grace, virtual_clock: true, ..on_any_port(Store::Memory) };
    let served = Served::start(config).expect("started");
    let mut connection = served.connect();
    let head = format!(
        "PUT /v1/queues/q/tasks/a HTTP/1.1\r\nHost: {}\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
        served.addr
    );
    connection.send(head.as_bytes());
    assert_eq!(connection.head().status, 100, "the call is under way");
    served.stop();
}

#[test]
fn leases_live_across_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = || Config { virtual_clock: true, ..on_any_port(Store::Dir(directory.path().join("data"))) };
    let served = Served::start(config()).expect("started");
    assert_eq!(served.expect(200, "GET", "/readyz", "")["durability"], "fsync");
    for key in ["a", "b"] {
        served.expect(201, "PUT", &format!("/v1/queues/q/tasks/{key}"), r#"{"payload":{"n":1}}"#);
    }
    served.expect(201, "PUT", "/v1/queues/q/tasks/later", r#"{"delay":"15d"}"#);
    let token = served.lease("q", 1)[0]["token"].clone();
    served.stop();

    let served = Served::start(config()).expect("started again");
    assert_eq!(served.counts("q"), [1, 1, 1]);
    assert_eq!(served.say("q", "ack", &[&token]), ["acked"]);
    let rest = served.lease("q", 10);
    assert_eq!(rest.iter().map(|task| &task["key"]).collect::<Vec<&Value>>(), ["b"]);
    assert_eq!(rest[0]["payload"], json!({"n": 1}));
    served.advance("15d");
    assert_eq!(served.lease("q", 10).len(), 2, "the later one, and b, whose lease ran out");
}
