//! The sink of Redis, against a real redis-server.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::kit::{Broker, Pushed, find};
use serde_json::Value;
use tickwheel_push::TargetState;
use tickwheel_push::broker::{Link, LinkState};
use tickwheel_push::redis::{ListEnd, RedisConnection, RedisPlan, RedisSink, Structure};
use tickwheel_push::webhook::TlsPlan;
use tickwheel_queue::{Death, Key, Put, Tag};

/// A Redis, and its own client.
struct Redis {
    broker: Broker,
    cli: PathBuf,
}

impl Redis {
    /// Starts a Redis that writes each entry to its disk before it answers; `None`: it is not installed.
    fn start(options: &[&str]) -> Option<Self> {
        let program = find("redis-server", "TICKWHEEL_REDIS_SERVER")?;
        let cli = find("redis-cli", "TICKWHEEL_REDIS_CLI")?;
        let broker = Broker::start(&program, |port, directory| {
            let mut args = redis_args(port, directory);
            args.extend(options.iter().map(|option| (*option).to_owned()));
            args
        });
        Some(Self { broker, cli })
    }

    /// Carries a command out. The answer is JSON, or the text of an error.
    fn ask(&self, words: &[&str]) -> Value {
        let (_, port) = self
            .broker
            .address()
            .rsplit_once(':')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("a port");
        let output =
            Command::new(&self.cli).args(["-p", &port, "--json"]).args(words).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// Returns the entries of the stream `due`, each with its fields.
    fn entries(&self) -> Vec<Vec<(String, String)>> {
        let answer = self.ask(&["XRANGE", "due", "-", "+"]);
        let fields = |entry: &Value| {
            let fields = texts(&entry[1]);
            fields.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        };
        answer.as_array().expect("entries").iter().map(fields).collect()
    }

    fn connection(&self) -> RedisConnection {
        RedisConnection::new(vec![self.broker.address().parse().expect("an endpoint")])
    }

    fn sink(&self, plan: RedisPlan) -> RedisSink {
        RedisSink::new(Arc::new(Link::new(self.connection())), plan)
    }
}

fn redis_args(port: u16, directory: &Path) -> Vec<String> {
    let directory = directory.to_str().expect("a path of text");
    let port = port.to_string();
    let args = ["--port", &port, "--bind", "127.0.0.1", "--dir", directory];
    let durable = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
    args.iter().chain(&durable).map(|arg| (*arg).to_owned()).collect()
}

fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().unwrap_or_else(|| panic!("{value} is no list")).iter();
    texts.map(|text| text.as_str().expect("a text").to_owned()).collect()
}

fn stream(wait: u32, timeout: Duration) -> RedisPlan {
    let structure = Structure::Stream { key: "due".to_owned(), maxlen: Some(100_000) };
    let headers = [("shop".to_owned(), "eu-{queue}".to_owned())];
    RedisPlan::new(structure, None, &headers, wait, timeout).expect("a plan")
}

fn list(key: &str, end: ListEnd) -> RedisPlan {
    let structure = Structure::List { key: key.to_owned(), end };
    RedisPlan::new(structure, None, &[], 0, TIMEOUT).expect("a plan")
}

const TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn an_entry_of_a_stream_has_all_facts_of_its_task() {
    let Some(redis) = Redis::start(&[]) else { return };
    let pushed = Pushed::start(redis.sink(stream(0, TIMEOUT)));
    let mut put =
        Put::new(&pushed.name, Key::new("order:1/ä").expect("a key")).payload(b"\x00\r\n\xff{}".to_vec());
    put.body.tags = vec![Tag::new("a,b").expect("a tag"), Tag::new("c").expect("a tag")];
    pushed.queue.put(put).wait().expect("a put");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    let [entry] = &redis.entries()[..] else { panic!("one entry") };
    let value = |name: &str| {
        let mut found = entry.iter().filter(|(known, _)| known == name);
        let (_, value) = found.next().unwrap_or_else(|| panic!("{name} is missing in {entry:?}"));
        assert!(found.next().is_none(), "{name} is there twice");
        value.as_str()
    };
    assert_eq!(value("id"), pushed.first_id());
    assert_eq!(value("tickwheel-queue"), "close");
    assert_eq!(value("tickwheel-key"), "order%3A1%2F%C3%A4");
    assert_eq!((value("tickwheel-attempt"), value("tickwheel-last-attempt")), ("1", "false"));
    assert_eq!(value("tickwheel-tags"), "a%2Cb,c");
    assert!(value("tickwheel-due-at").ends_with('Z'));
    assert_eq!(value("shop"), "eu-close");
    assert_eq!(value("content-type"), "application/octet-stream");
    let payload = redis.ask(&["EVAL", "return #redis.call('XRANGE', KEYS[1], '-', '+')[1][2][#redis.call('XRANGE', KEYS[1], '-', '+')[1][2]]", "1", "due"]);
    assert_eq!(payload, 6, "each byte of the payload arrives");
}

#[tokio::test]
async fn an_element_of_a_list_is_an_envelope_at_the_end_that_is_named() {
    let Some(redis) = Redis::start(&[]) else { return };
    for (key, end, order) in
        [("right", ListEnd::Right, ["order:0", "order:1"]), ("left", ListEnd::Left, ["order:1", "order:0"])]
    {
        let pushed = Pushed::start(redis.sink(list(key, end)));
        for n in 0..2 {
            pushed.put(&format!("order:{n}"));
            pushed.until("acked", |pushed| pushed.count("acked") == n + 1).await;
        }
        let elements: Vec<Value> = texts(&redis.ask(&["LRANGE", key, "0", "-1"]))
            .iter()
            .map(|text| serde_json::from_str(text).expect("JSON"))
            .collect();
        let keys: Vec<_> = elements.iter().map(|element| element["key"].as_str().expect("a key")).collect();
        assert_eq!(keys, order);
        assert_eq!((&elements[0]["queue"], &elements[0]["attempt"]), (&"close".into(), &1.into()));
    }
}

/// A frozen server has messages under way when it is killed. Each is given back and sent again.
#[tokio::test]
async fn a_killed_server_loses_nothing_and_uses_up_no_attempt() {
    let Some(mut redis) = Redis::start(&[]) else { return };
    let pushed = Pushed::start(redis.sink(stream(0, TIMEOUT)));
    pushed.put_many(0..100);
    pushed.until("begun", |pushed| pushed.count("acked") >= 20).await;
    redis.broker.signal("-STOP");
    pushed.put_many(100..200);
    pushed.until("under way", |pushed| pushed.view().in_flight > 1).await;
    redis.broker.kill();
    pushed.until("down", |pushed| pushed.view().state == TargetState::Open).await;
    redis.broker.start_again();
    pushed.until("all acked", |pushed| pushed.are_gone(0..200)).await;
    assert!(pushed.count("given_back") > 1);
    pushed.assert_no_attempt_is_used_up();
    let ids: BTreeSet<String> =
        redis.entries().into_iter().flatten().filter(|(name, _)| name == "id").map(|(_, id)| id).collect();
    assert_eq!(ids.len() as u64, pushed.count("acked"), "each acked task is in the stream");
}

#[tokio::test]
async fn a_server_that_does_not_answer_uses_up_no_attempt() {
    let Some(redis) = Redis::start(&[]) else { return };
    let pushed = Pushed::start(redis.sink(stream(0, Duration::from_millis(300))));
    pushed.put("order:0");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    redis.broker.signal("-STOP");
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") > 0).await;
    pushed.assert_no_attempt_is_used_up();
    redis.broker.signal("-CONT");
    pushed.until("acked", |pushed| pushed.count("acked") == 2).await;
}

#[tokio::test]
async fn a_wrong_password_is_said_by_the_link() {
    let Some(redis) = Redis::start(&["--requirepass", "hunter2"]) else { return };
    let passwords = [(Some("wrong"), "Password authentication failed"), (None, "NOAUTH")];
    for (password, reason) in passwords {
        let connection = RedisConnection { password: password.map(str::to_owned), ..redis.connection() };
        let link = Arc::new(Link::new(connection));
        let pushed = Pushed::start(RedisSink::new(Arc::clone(&link), stream(0, TIMEOUT)));
        pushed.put("order:1");
        pushed.until("given back", |pushed| pushed.count("given_back") >= 2).await;
        let text = pushed.last_reason();
        assert!(text.contains(reason) && !text.contains("wrong") && !text.contains("hunter2"), "{text}");
        assert!(matches!(link.state(), LinkState::Down(_, why) if why.contains(reason)));
        pushed.assert_no_attempt_is_used_up();
    }
    let connection = RedisConnection { password: Some("hunter2".to_owned()), ..redis.connection() };
    let pushed = Pushed::start(RedisSink::new(Arc::new(Link::new(connection)), stream(0, TIMEOUT)));
    pushed.put("order:1");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
}

#[tokio::test]
async fn a_full_server_and_one_without_rights_use_up_no_attempt() {
    let Some(redis) = Redis::start(&[]) else { return };
    let pushed = Pushed::start(redis.sink(stream(0, TIMEOUT)));
    let refusals = [
        (
            ["CONFIG", "SET", "maxmemory", "1"].as_slice(),
            ["CONFIG", "SET", "maxmemory", "0"].as_slice(),
            "OOM",
        ),
        (&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"], "READONLY"),
        (&["ACL", "SETUSER", "default", "-xadd"], &["ACL", "SETUSER", "default", "+xadd"], "NOPERM"),
    ];
    for (nth, (bad, good, reason)) in refusals.into_iter().enumerate() {
        redis.ask(bad);
        let before = pushed.count("given_back");
        pushed.put(&format!("order:{nth}"));
        pushed.until(reason, |pushed| pushed.count("given_back") >= before + 6).await;
        assert!(pushed.last_reason().starts_with(reason), "{}", pushed.last_reason());
        redis.ask(good);
        pushed.until("acked", |pushed| pushed.count("acked") == nth as u64 + 1).await;
        pushed.assert_no_attempt_is_used_up();
    }
}

#[tokio::test]
async fn a_key_of_another_type_disables_the_target() {
    let Some(redis) = Redis::start(&[]) else { return };
    redis.ask(&["SET", "due", "1"]);
    let pushed = Pushed::start(redis.sink(stream(0, TIMEOUT)));
    pushed.put("order:1");
    pushed.until("disabled", |pushed| pushed.view().state == TargetState::Disabled).await;
    assert!(pushed.last_reason().starts_with("WRONGTYPE"), "{}", pushed.last_reason());
    redis.ask(&["DEL", "due"]);
    assert!(pushed.push.resume(&pushed.name));
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
}

#[tokio::test]
async fn a_payload_that_is_too_large_is_dead_at_once_and_others_arrive() {
    let Some(redis) = Redis::start(&["--proto-max-bulk-len", "1mb"]) else { return };
    let pushed = Pushed::start(redis.sink(stream(0, TIMEOUT)));
    pushed.put_payload("large", vec![b'x'; (1 << 20) + 1]);
    pushed.put_many(0..20);
    pushed.until("all others acked", |pushed| pushed.count("acked") == 20).await;
    pushed.until("dead", |pushed| pushed.death("large").is_some()).await;
    assert_eq!(pushed.death("large"), Some(Death::TooLarge));
}

#[tokio::test]
async fn with_wait_a_message_is_delivered_when_a_replica_has_it() {
    let Some(redis) = Redis::start(&["--repl-diskless-sync-delay", "0"]) else { return };
    let pushed = Pushed::start(redis.sink(stream(1, Duration::from_secs(2))));
    pushed.put("order:0");
    pushed.until("open", |pushed| pushed.view().state == TargetState::Open).await;
    assert_eq!(pushed.count("given_back"), 1, "the first attempt opens the breaker");
    pushed.put_many(1..10);
    pushed.until("tried again", |pushed| pushed.count("given_back") >= 2).await;
    let reason = "0 of 1 replicas confirmed within 500ms; connect replicas to the server, or lower `wait` of the target";
    assert_eq!(pushed.last_reason(), reason);
    assert_eq!(pushed.count("acked"), 0);
    let port = redis.broker.address().rsplit_once(':').expect("a port").1.to_owned();
    let Some(replica) = Redis::start(&["--replicaof", "127.0.0.1", &port]) else { return };
    pushed.until("all acked", |pushed| pushed.count("acked") == 10).await;
    pushed.assert_no_attempt_is_used_up();
    let ids: BTreeSet<String> =
        replica.entries().into_iter().flatten().filter(|(name, _)| name == "id").map(|(_, id)| id).collect();
    assert_eq!(ids.len(), 10, "the replica has all of them");

    // A connection with both addresses leaves the replica out.
    let mut connection = replica.connection();
    connection.endpoints.extend(redis.connection().endpoints);
    let pushed = Pushed::start(RedisSink::new(Arc::new(Link::new(connection)), stream(1, TIMEOUT)));
    pushed.put("order:11");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    assert_eq!(pushed.count("given_back"), 0);
}

#[tokio::test]
async fn a_connection_over_tls_trusts_the_roots_that_are_named() {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("a path of text").to_owned();
    std::fs::write(path("cert"), key.cert.pem()).expect("a file");
    std::fs::write(path("key"), key.signing_key.serialize_pem()).expect("a file");
    let tls_port = tickwheel_testing::free_port();
    let port = tls_port.to_string();
    let options = [
        "--tls-port",
        &port,
        "--tls-cert-file",
        &path("cert"),
        "--tls-key-file",
        &path("key"),
        "--tls-auth-clients",
        "no",
    ];
    let Some(redis) = Redis::start(&options) else { return };
    let sink = |roots_pem: Option<Vec<u8>>| {
        let tls = TlsPlan { roots_pem, ..TlsPlan::default() }.config().expect("TLS");
        let endpoint = format!("localhost:{tls_port}").parse().expect("an endpoint");
        let connection = RedisConnection { tls: Some(tls), ..RedisConnection::new(vec![endpoint]) };
        RedisSink::new(Arc::new(Link::new(connection)), stream(0, TIMEOUT))
    };
    let pushed = Pushed::start(sink(None));
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") >= 1).await;
    assert!(
        pushed.last_reason().contains("TLS: no trusted authority has signed the certificate"),
        "{}",
        pushed.last_reason()
    );
    let pushed = Pushed::start(sink(Some(key.cert.pem().into_bytes())));
    pushed.put("order:1");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    assert_eq!(redis.entries().len(), 1);
}
