//! The sink of NATS JetStream, against a real nats-server.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::kit::{Broker, Pushed, find};
use async_nats::jetstream;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Config, Stream};
use tickwheel_push::TargetState;
use tickwheel_push::broker::{ContentForm, Link, LinkState};
use tickwheel_push::nats::{NatsConnection, NatsLogin, NatsPlan, NatsSink};
use tickwheel_push::webhook::TlsPlan;
use tickwheel_queue::{Death, Key, Put, Tag};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Starts a server with further arguments; `None`: it is not installed.
fn start(more: &[&str]) -> Option<Broker> {
    let program = find("nats-server", "TICKWHEEL_NATS_SERVER")?;
    Some(Broker::start(&program, |port, directory| {
        let directory = directory.to_str().expect("a path of text");
        let port = port.to_string();
        let args = ["-a", "127.0.0.1", "-p", &port, "-sd", directory];
        args.iter().chain(more).map(|arg| (*arg).to_owned()).collect()
    }))
}

fn connection(broker: &Broker) -> NatsConnection {
    NatsConnection::new(vec![broker.address().parse().expect("an endpoint")])
}

fn plan(timeout: Duration) -> NatsPlan {
    let headers = [("shop".to_owned(), "eu-{queue}".to_owned())];
    NatsPlan::new("due.{queue}", "DUE", ContentForm::Payload, &headers, timeout).expect("a plan")
}

fn pushed(connection: NatsConnection, timeout: Duration) -> Pushed {
    Pushed::start(NatsSink::new(Arc::new(Link::new(connection)), plan(timeout)))
}

/// Makes a stream that takes `due.>`.
async fn stream(broker: &Broker, config: Config) -> Stream {
    let client = async_nats::connect(broker.address()).await.expect("a connection");
    let subjects = vec!["due.>".to_owned()];
    jetstream::new(client).create_stream(Config { subjects, ..config }).await.expect("a stream")
}

fn due() -> Config {
    Config { name: "DUE".to_owned(), ..Config::default() }
}

/// Reads all messages of the stream.
async fn messages(broker: &Broker) -> Vec<StreamMessage> {
    let client = async_nats::connect(broker.address()).await.expect("a connection");
    let mut stream = jetstream::new(client).get_stream("DUE").await.expect("a stream");
    let count = stream.info().await.expect("figures").state.last_sequence;
    let mut messages = Vec::new();
    for sequence in 1..=count {
        messages.push(stream.get_raw_message(sequence).await.expect("a message"));
    }
    messages
}

#[tokio::test]
async fn a_message_has_all_facts_of_its_task() {
    let Some(broker) = start(&["-js"]) else { return };
    stream(&broker, due()).await;
    let pushed = pushed(connection(&broker), TIMEOUT);
    let key = Key::new("order:1/ä").expect("a key");
    let mut put = Put::new(&pushed.name, key).payload(b"\x00\r\n\xff".to_vec());
    put.body.tags = vec![Tag::new("a,b").expect("a tag"), Tag::new("c").expect("a tag")];
    pushed.queue.put(put).wait().expect("a put");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    let [message] = &messages(&broker).await[..] else { panic!("one message") };
    let value =
        |name: &str| message.headers.get(name).unwrap_or_else(|| panic!("{name} is missing")).as_str();
    assert_eq!((&*message.subject, &message.payload[..]), ("due.close", b"\x00\r\n\xff".as_slice()));
    assert_eq!((value("Nats-Msg-Id"), value("tickwheel-id")), (&*pushed.first_id(), &*pushed.first_id()));
    assert_eq!((value("tickwheel-queue"), value("tickwheel-key")), ("close", "order%3A1%2F%C3%A4"));
    assert_eq!((value("tickwheel-attempt"), value("tickwheel-last-attempt")), ("1", "false"));
    assert_eq!((value("tickwheel-tags"), value("shop")), ("a%2Cb,c", "eu-close"));
    assert_eq!(value("content-type"), "application/octet-stream");
    assert!(value("tickwheel-due-at").ends_with('Z'));
}

/// A frozen server has messages under way when it is killed. Each is given back and sent again, and the stream takes each id once.
#[tokio::test]
async fn a_killed_server_loses_nothing_and_uses_up_no_attempt() {
    let Some(mut broker) = start(&["-js"]) else { return };
    stream(&broker, due()).await;
    let pushed = pushed(connection(&broker), TIMEOUT);
    pushed.put_many(0..100);
    pushed.until("begun", |pushed| pushed.count("acked") >= 20).await;
    broker.signal("-STOP");
    pushed.put_many(100..200);
    pushed.until("under way", |pushed| pushed.view().in_flight > 1).await;
    broker.kill();
    pushed.until("down", |pushed| pushed.view().state == TargetState::Open).await;
    broker.start_again();
    pushed.until("all acked", |pushed| pushed.are_gone(0..200)).await;
    assert!(pushed.count("given_back") > 1);
    pushed.assert_no_attempt_is_used_up();
    let messages = messages(&broker).await;
    let ids: BTreeSet<_> =
        messages.iter().map(|message| message.headers.get("Nats-Msg-Id").expect("an id").as_str()).collect();
    assert_eq!((ids.len(), messages.len()), (200, 200), "each acked task is in the stream, once");
}

#[tokio::test]
async fn a_server_that_does_not_answer_uses_up_no_attempt() {
    let Some(broker) = start(&["-js"]) else { return };
    stream(&broker, due()).await;
    let pushed = pushed(connection(&broker), Duration::from_millis(300));
    pushed.put("order:0");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    broker.signal("-STOP");
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") > 0).await;
    pushed.assert_no_attempt_is_used_up();
    broker.signal("-CONT");
    pushed.until("acked", |pushed| pushed.count("acked") == 2).await;
}

#[tokio::test]
async fn a_wrong_password_is_said_by_the_link() {
    let Some(broker) = start(&["-js", "--user", "shop", "--pass", "hunter2"]) else { return };
    for login in [NatsLogin::User("shop".to_owned(), "wrong".to_owned()), NatsLogin::None] {
        let link = Arc::new(Link::new(NatsConnection { login, ..connection(&broker) }));
        let pushed = Pushed::start(NatsSink::new(Arc::clone(&link), plan(TIMEOUT)));
        pushed.put("order:1");
        pushed.until("given back", |pushed| pushed.count("given_back") >= 2).await;
        let reason = pushed.last_reason();
        assert!(reason.contains("authorization violation"), "{reason}");
        assert!(!reason.contains("wrong") && !reason.contains("hunter2"), "{reason}");
        assert!(matches!(link.state(), LinkState::Down(_, why) if why.contains("authorization violation")));
        pushed.assert_no_attempt_is_used_up();
    }
    // With the right password the message comes as far as the stream, which is missing.
    let login = NatsLogin::User("shop".to_owned(), "hunter2".to_owned());
    let pushed = pushed(NatsConnection { login, ..connection(&broker) }, TIMEOUT);
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") >= 1).await;
    assert_eq!(pushed.last_reason(), "no stream takes the subject `due.close`");
}

#[tokio::test]
async fn a_missing_stream_uses_up_no_attempt_and_the_message_comes_when_it_is_there() {
    let Some(broker) = start(&["-js"]) else { return };
    let pushed = pushed(connection(&broker), TIMEOUT);
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") >= 6).await;
    assert_eq!(pushed.last_reason(), "no stream takes the subject `due.close`");
    let other = stream(&broker, Config { name: "OTHER".to_owned(), ..Config::default() }).await;
    pushed.until("another", |pushed| pushed.last_reason().contains("expected stream does not match")).await;
    pushed.assert_no_attempt_is_used_up();
    let client = async_nats::connect(broker.address()).await.expect("a connection");
    jetstream::new(client).delete_stream("OTHER").await.expect("deleted");
    drop(other);
    stream(&broker, due()).await;
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    pushed.assert_no_attempt_is_used_up();
}

#[tokio::test]
async fn a_server_without_jetstream_is_no_target() {
    let Some(broker) = start(&[]) else { return };
    let pushed = pushed(connection(&broker), TIMEOUT);
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") >= 6).await;
    assert_eq!(
        pushed.last_reason(),
        "no stream takes the subject `due.close`, for the server has no JetStream"
    );
    pushed.assert_no_attempt_is_used_up();
}

#[tokio::test]
async fn a_subject_that_the_user_may_not_use_uses_up_no_attempt() {
    let config = r#"authorization { users = [
        { user: shop, password: hunter2, permissions: { publish: { deny: ["due.>"] } } }
    ] }"#;
    let files = tempfile::tempdir().expect("a directory");
    let file = files.path().join("nats.conf");
    std::fs::write(&file, config).expect("a file");
    let Some(broker) = start(&["-js", "-c", file.to_str().expect("a path of text")]) else { return };
    let login = NatsLogin::User("shop".to_owned(), "hunter2".to_owned());
    let pushed = pushed(NatsConnection { login, ..connection(&broker) }, Duration::from_millis(200));
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") >= 2).await;
    assert!(pushed.last_reason().contains("Permissions Violation"), "{}", pushed.last_reason());
    pushed.assert_no_attempt_is_used_up();
}

#[tokio::test]
async fn a_payload_that_is_too_large_is_dead_at_once_and_others_arrive() {
    let Some(broker) = start(&["-js"]) else { return };
    stream(&broker, Config { max_message_size: 2_000, ..due() }).await;
    let pushed = pushed(connection(&broker), TIMEOUT);
    pushed.put_payload("too large for the stream", vec![b'x'; 2_001]);
    pushed.put_payload("too large for the server", vec![b'x'; 1 << 20]);
    pushed.put_many(0..20);
    pushed.until("all others acked", |pushed| pushed.count("acked") == 20).await;
    for key in ["too large for the stream", "too large for the server"] {
        pushed.until("dead", |pushed| pushed.death(key).is_some()).await;
        assert_eq!(pushed.death(key), Some(Death::TooLarge));
    }
    assert_eq!(pushed.count("given_back"), 0);
}

#[tokio::test]
async fn a_full_stream_uses_up_no_attempt() {
    let Some(broker) = start(&["-js"]) else { return };
    let discard = async_nats::jetstream::stream::DiscardPolicy::New;
    let full = stream(&broker, Config { max_messages: 1, discard, ..due() }).await;
    let pushed = pushed(connection(&broker), TIMEOUT);
    pushed.put_many(0..2);
    pushed.until("given back", |pushed| pushed.count("given_back") >= 6).await;
    assert!(pushed.last_reason().contains("maximum messages exceeded"), "{}", pushed.last_reason());
    full.purge().await.expect("purged");
    pushed.until("all acked", |pushed| pushed.count("acked") == 2).await;
    pushed.assert_no_attempt_is_used_up();
}

#[tokio::test]
async fn a_connection_over_tls_trusts_the_roots_that_are_named() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let files = tempfile::tempdir().expect("a directory");
    let path = |name: &str| files.path().join(name).to_str().expect("a path of text").to_owned();
    std::fs::write(path("cert"), made.cert.pem()).expect("a file");
    std::fs::write(path("key"), made.signing_key.serialize_pem()).expect("a file");
    let options = ["-js", "--tls", "--tlscert", &path("cert"), "--tlskey", &path("key")];
    let Some(broker) = start(&options) else { return };
    let pushed = |roots_pem: Option<Vec<u8>>| {
        let tls = TlsPlan { roots_pem, ..TlsPlan::default() }.config().expect("TLS");
        let address = broker.address().replace("127.0.0.1", "localhost");
        let endpoints = vec![address.parse().expect("an endpoint")];
        pushed(NatsConnection { tls: Some(tls), ..NatsConnection::new(endpoints) }, TIMEOUT)
    };
    let distrustful = pushed(None);
    distrustful.put("order:1");
    distrustful.until("given back", |pushed| pushed.count("given_back") >= 1).await;
    let reason = distrustful.last_reason();
    assert!(reason.contains("no trusted authority has signed the certificate"), "{reason}");
    let trustful = pushed(Some(made.cert.pem().into_bytes()));
    trustful.put("order:1");
    trustful.until("given back", |pushed| pushed.count("given_back") >= 1).await;
    assert_eq!(trustful.last_reason(), "no stream takes the subject `due.close`");
}
