//! Runs each example of a target against a real broker, and without one.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::broker::{Broker, find};

fn run(program: &str, address: Option<&str>) -> Output {
    let mut command = Command::new(program);
    command.args(address).stdin(Stdio::null()).output().expect("the example starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the examples print UTF-8")
}

/// Runs an example, and checks that each order arrived, and that none came before its time.
fn arrives(program: &str, address: Option<&str>) {
    let output = run(program, address);
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}{complained}");
    let mut lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.pop(), Some("the queue is empty"), "{said}");
    // A target may send a message twice.
    lines.retain(|line| !line.contains(" arrived again, "));
    let (mut orders, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for line in lines {
        let (order, rest) = line.split_once(" arrived ").expect(line);
        let (late_ms, id) = rest.split_once(" ms after it was due, with the id ").expect(line);
        late_ms.parse::<u64>().expect(line);
        assert!(orders.insert(order) && ids.insert(id), "{said}");
    }
    let expected = [r#"{"order":1}"#, r#"{"order":2}"#, r#"{"order":3}"#];
    assert_eq!(orders, BTreeSet::from(expected), "{said}");
}

/// Runs an example twice, because a run must not leave anything that is in the way of the next.
fn arrives_twice(program: &str, address: &str) {
    for _ in 0..2 {
        arrives(program, Some(address));
    }
}

#[test]
fn push_webhook_delivers_each_order() {
    arrives(env!("CARGO_BIN_EXE_push_webhook"), None);
}

#[test]
fn push_kafka_delivers_each_order() {
    let Some(program) = find("tansu", "TICKWHEEL_TANSU") else { return };
    let broker = Broker::start(&program, |port, _| {
        let [url, advertised] = ["127.0.0.1", "localhost"].map(|host| format!("tcp://{host}:{port}"));
        let listener = ["broker", "--listener-url", &url, "--advertised-listener-url", &advertised];
        let storage = ["--storage-engine", "memory://tansu/"];
        listener.iter().chain(&storage).map(|arg| (*arg).to_owned()).collect()
    });
    arrives_twice(env!("CARGO_BIN_EXE_push_kafka"), &broker.address());
}

#[test]
fn push_rabbitmq_delivers_each_order() {
    let Some(broker) = crate::rabbit::Broker::start() else { return };
    let url = broker.uri();
    let address = url.trim_start_matches("amqp://guest:guest@").trim_end_matches("/%2f");
    arrives_twice(env!("CARGO_BIN_EXE_push_rabbitmq"), address);
}

#[test]
fn push_nats_delivers_each_order() {
    let Some(program) = find("nats-server", "TICKWHEEL_NATS_SERVER") else { return };
    let broker = start(&program, &["-js", "-a", "127.0.0.1"], "-p", "-sd");
    arrives_twice(env!("CARGO_BIN_EXE_push_nats"), &broker.address());
}

#[test]
fn push_redis_delivers_each_order() {
    let Some(program) = find("redis-server", "TICKWHEEL_REDIS_SERVER") else { return };
    let broker = start(&program, &["--bind", "127.0.0.1"], "--port", "--dir");
    arrives_twice(env!("CARGO_BIN_EXE_push_redis"), &broker.address());
}

#[test]
fn push_beanstalkd_delivers_each_order() {
    let Some(program) = find("beanstalkd", "TICKWHEEL_BEANSTALKD") else { return };
    let broker = start(&program, &["-l", "127.0.0.1"], "-p", "-b");
    arrives_twice(env!("CARGO_BIN_EXE_push_beanstalkd"), &broker.address());
}

/// Starts a broker with these arguments, and with its port and its directory as the values of two more.
fn start(program: &Path, args: &[&str], port_arg: &str, directory_arg: &str) -> Broker {
    Broker::start(program, |port, directory| {
        let directory = directory.to_str().expect("a path of text");
        let more = [port_arg, &port.to_string(), directory_arg, directory].map(str::to_owned);
        args.iter().map(|arg| (*arg).to_owned()).chain(more).collect()
    })
}

const EXAMPLES: [(&str, &str); 5] = [
    (env!("CARGO_BIN_EXE_push_kafka"), "tansu broker --listener-url tcp://127.0.0.1:9092 --advertised"),
    (env!("CARGO_BIN_EXE_push_rabbitmq"), "rabbitmq-server &"),
    (env!("CARGO_BIN_EXE_push_nats"), "nats-server -js &"),
    (env!("CARGO_BIN_EXE_push_redis"), "redis-server --port 6379 &"),
    (env!("CARGO_BIN_EXE_push_beanstalkd"), "beanstalkd -l 127.0.0.1 -p 11300 &"),
];

/// Runs all examples with the address of no broker.
fn all_say_how_to_start_a_broker(address: &str) {
    std::thread::scope(|scope| {
        for (program, command) in EXAMPLES {
            scope.spawn(move || {
                let output = run(program, Some(address));
                assert!(!output.status.success(), "{program} succeeds without a broker");
                let complained = text(&output.stderr);
                let expected = format!("no broker answers at {address}; start one first: {command}");
                assert!(complained.contains(&expected), "{complained}");
            });
        }
    });
}

#[test]
fn an_example_whose_broker_is_not_there_says_how_to_start_one() {
    all_say_how_to_start_a_broker(&format!("127.0.0.1:{}", tickwheel_testing::free_port()));
}

/// The port is open, and connections stay open. An example that waited for an answer would never end.
#[test]
fn an_example_whose_broker_does_not_answer_says_how_to_start_one() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    all_say_how_to_start_a_broker(&listener.local_addr().expect("an address").to_string());
}
