//! Connections and batches when their limits are reached.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use tickwheel_server::{Config, Limits, Tokens};

use crate::raw::Connection;
use crate::served::{Served, until, virtual_memory};

const LEASE: &str = "/v1/queues/q/lease";

fn few(connections_max: usize, connections_kept: usize) -> Config {
    let limits = Limits { connections_kept, ..Limits::default() };
    Config { connections_max, limits, ..virtual_memory() }
}

/// A connection that was served and is idle now.
fn idle(served: &Served) -> Connection {
    let mut connection = served.connect();
    connection.request("GET", "/healthz", &[], b"");
    assert_eq!(connection.reply().status, 200);
    connection
}

/// Connections with a call under way: a batch whose body goes on.
fn at_work(served: &Served, count: usize, headers: &str) -> Vec<Connection> {
    let begin = |_| {
        let mut connection = served.connect();
        let head = format!(
            "POST /v1/queues/q/batch HTTP/1.1\r\nHost: {}\r\n{headers}Transfer-Encoding: chunked\r\n\r\n",
            served.addr
        );
        connection.send(head.as_bytes());
        assert_eq!(connection.head().status, 200);
        connection
    };
    (0..count).map(begin).collect()
}

#[test]
fn an_idle_connection_makes_way() {
    let served = Served::start(few(3, 1)).expect("started");
    let mut held = Vec::from([(); 3].map(|()| idle(&served)));
    held.push(idle(&served));
    // The connection that is idle the longest is closed. But the server may see the ends of the answers in
    // another order than the clients do.
    until("one has made way", || held.iter_mut().any(Connection::has_ended));
    held.retain_mut(|connection| !connection.has_ended());
    assert_eq!(held.len(), 3, "one alone");
    for connection in &mut held {
        connection.request("GET", "/v1/queues", &[], b"");
        let answer = connection.reply();
        assert_eq!((answer.status, answer.header("connection")), (200, None), "those that are there stay");
    }
    // A great number of idle connections does not keep out any other client.
    let flood: Vec<_> = (0..50).map(|_| served.connect()).collect();
    assert_eq!(served.call("GET", "/v1/queues", "").status, 200);
    drop(flood);
}

#[test]
fn a_connection_above_the_limit_is_told_to_try_again() {
    let served = Served::start(few(2, 8)).expect("started");
    let mut workers = at_work(&served, 2, "");
    for _ in 0..3 {
        let refused = served.call("GET", "/v1/queues", "");
        refused.assert_problem(429, "busy", "the third");
        assert!(
            refused.text().contains("2 connections, which is its limit (--max-connections)"),
            "{}",
            refused.text()
        );
        assert_eq!((refused.header("retry-after"), refused.header("connection")), (Some("1"), Some("close")));
        // Reserved permits are for programs that monitor the server.
        for path in ["/healthz", "/readyz", "/metrics"] {
            let answer = served.call("GET", path, "");
            assert_eq!((answer.status, answer.header("connection")), (200, Some("close")), "{path}");
        }
    }
    drop(workers.pop());
    until("there is a place again", || served.call("PUT", "/v1/queues/q/tasks/a", "{}").status < 300);
}

/// Idle connections cannot take the reserved permits either.
#[test]
fn idle_connections_take_no_reserved_permit() {
    let tokens = Tokens::parse("boss\nworker rights=consume,produce").expect("tokens");
    let served = Served::start(Config { tokens, ..few(2, 8) }).expect("started");
    let workers = at_work(&served, 2, "Authorization: Bearer worker\r\n");
    let mut held = Vec::new();
    for _ in 0..20 {
        held.extend((0..10).map(|_| served.connect()));
        assert_eq!(served.call("GET", "/healthz", "").status, 200);
        let boss = [("Authorization", "Bearer boss")];
        let answer = served.call_with("GET", "/v1/queues", &boss, "");
        assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
        let worker = [("Authorization", "Bearer worker")];
        served.call_with("POST", LEASE, &worker, "").assert_problem(429, "busy", "no admin");
    }
    drop((held, workers));
}

/// Without tokens every caller may do everything. So `admin` gives no right to a reserved permit.
#[test]
fn without_tokens_a_reserved_permit_is_for_health_and_metrics_only() {
    let served = Served::start(few(1, 8)).expect("started");
    let workers = at_work(&served, 1, "");
    let any = [("Authorization", "Bearer any")];
    served.call_with("GET", "/v1/queues", &any, "").assert_problem(429, "busy", "a token that is none");
    drop(workers);
}

/// Behind a proxy on this computer all clients have one address.
#[test]
fn a_local_proxy_does_not_count_as_one_client() {
    let limits = Limits { batches: 4, batches_per_caller: 1, ..Limits::default() };
    let served = Served::start(Config { connections_per_address_max: 1, limits, ..virtual_memory() })
        .expect("started");
    let mut clients: Vec<_> = (0..4).map(|_| idle(&served)).collect();
    for client in &mut clients {
        client.send(
            format!(
                "POST /v1/queues/q/batch HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
                served.addr
            )
            .as_bytes(),
        );
        client.send(b"17\r\n{\"op\":\"put\",\"key\":\"a\"}\n\r\n");
        assert_eq!(client.head().status, 200);
    }
    for client in &mut clients {
        client.send(b"0\r\n\r\n");
        let mut body = Vec::new();
        while client.chunk(&mut body) {}
        assert_eq!(String::from_utf8_lossy(&body).lines().count(), 1);
    }
    assert_eq!(served.counts("q"), [0, 1, 0]);
}

/// The address of this computer in its network, if it has one.
fn own_address() -> Option<SocketAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent; the system only tells the local address that it would use.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().filter(|own| !own.ip().is_loopback() && !own.ip().is_unspecified())
}

#[test]
fn another_computer_has_its_share_and_health_above_it() {
    // A container may have no network at all.
    let Some(own) = own_address() else { return };
    let config = Config {
        listen: "0.0.0.0:0".parse().expect("an address"),
        insecure: true,
        connections_per_address_max: 1,
        ..virtual_memory()
    };
    let served = Served::start(config).expect("started");
    let to = || Connection::to(SocketAddr::new(own.ip(), served.addr.port()));
    let mut first = to();
    first.request("GET", "/v1/queues", &[], b"");
    assert_eq!(first.reply().status, 200);
    let mut second = to();
    second.request("GET", "/v1/queues", &[], b"");
    let refused = second.reply();
    refused.assert_problem(429, "busy", "its second");
    assert!(refused.text().contains("--max-connections-per-address"), "{}", refused.text());
    let mut health = to();
    health.request("GET", "/healthz", &[], b"");
    assert_eq!(health.reply().status, 200);
    assert_eq!(served.call("GET", "/v1/queues", "").status, 200, "others are others");
}

#[test]
fn idle_connections_make_way_for_clients_of_beanstalkd() {
    let door = tickwheel_server::Beanstalk {
        listen: "127.0.0.1:0".parse().expect("an address"),
        ..tickwheel_server::Beanstalk::default()
    };
    let served = Served::start(Config { beanstalk: Some(door), ..few(2, 1) }).expect("started");
    let held = [idle(&served), idle(&served)];
    let Some(tickwheel_server::ListenAt::Tcp(at)) = served.beanstalk else { panic!("no door") };
    let client = TcpStream::connect(at).expect("connected");
    client.set_read_timeout(Some(tickwheel_testing::HANG_TIME)).expect("set");
    (&client).write_all(b"list-tube-used\r\n").expect("said");
    let mut line = String::new();
    BufReader::new(&client).read_line(&mut line).expect("an answer");
    assert_eq!(line, "USING default\r\n");
    drop(held);
}
