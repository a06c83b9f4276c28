//! The amqp sink against a real RabbitMQ broker.

use std::sync::Arc;

use crate::kit::{until, until_or};
use crate::rabbit::{Broker, MESSAGE_BYTES_MAX, get};
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions, QueuePurgeOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, ExchangeKind};
use tickwheel_push::amqp::{AmqpDial, AmqpForm, AmqpPlan, AmqpSink, CONTENT_TYPE_PACKED, Packed};
use tickwheel_push::broker::{Link, LinkState};
use tickwheel_push::dispatch::{BreakerPlan, Plan};
use tickwheel_push::{Push, Target};
use tickwheel_queue::{Body, Death, Get, Key, Put, Queue, QueueName, Retry, Tag, TaskView};

/// A queue whose tasks are published.
struct Pushed {
    queue: Queue,
    name: QueueName,
    push: Push,
}

impl Pushed {
    fn start(plan: AmqpPlan, link: &Arc<Link<AmqpDial>>) -> Self {
        let queue = Queue::options().open_memory().expect("a queue");
        let name = QueueName::new("close").expect("a name");
        let (push, _) = Push::new(&queue);
        let breaker = BreakerPlan { failures: 5, open_ms: 20, open_max_ms: 40 };
        let timeout_ms = plan.timeout.as_millis() as u64;
        let plan_of_target = Plan { concurrency: 512, timeout_ms, breaker, ..Plan::default() };
        push.set(
            &name,
            Target { plan: plan_of_target, ..Target::new(Arc::new(AmqpSink::new(Arc::clone(link), plan))) },
        );
        Self { queue, name, push }
    }

    fn put(&self, key: &str, body: Body) {
        let mut put = Put::new(&self.name, Key::new(key).expect("a key"));
        put.body = body;
        put.terms.retry = Some(Retry { max_attempts: Some(3), backoff: None });
        self.queue.put(put).wait().expect("a put");
    }

    fn task(&self, key: &str) -> Option<TaskView> {
        let key = Key::new(key).expect("a key");
        self.queue.get(Get { queue: self.name.clone(), key }).wait().ok()
    }

    fn death(&self, key: &str) -> Option<Death> {
        self.task(key)?.extra.dead.map(|dead| dead.why)
    }

    fn count(&self, outcome: &str) -> u64 {
        let view = self.push.view(&self.name).expect("a target");
        let mut outcomes = view.figures.outcomes();
        outcomes.find(|(name, _)| *name == outcome).expect("an outcome").1
    }

    /// The reason of the last failure.
    fn reason(&self) -> String {
        let attempts = self.push.view(&self.name).expect("a target").attempts.newest(1_000);
        let reason = attempts.iter().find_map(|attempt| attempt.reason.as_deref());
        reason.unwrap_or_default().to_owned()
    }

    /// Whether one of the last failures had this in its reason.
    fn had_reason(&self, part: &str) -> bool {
        let attempts = self.push.view(&self.name).expect("a target").attempts.newest(1_000);
        attempts.iter().filter_map(|attempt| attempt.reason.as_deref()).any(|reason| reason.contains(part))
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let told = || {
            let view = self.push.view(&self.name).expect("a target");
            let outcomes: Vec<_> = view.figures.outcomes().collect();
            format!("{what}: {:?} {:?} {outcomes:?}", view.state, view.reason)
        };
        until_or(told, || holds(self)).await;
    }

    async fn until_acked(&self, key: &str) {
        self.until("acked", |pushed| pushed.task(key).is_none()).await;
    }
}

fn plan(exchange: &str, routing_key: &str) -> AmqpPlan {
    AmqpPlan::new(exchange, routing_key, AmqpForm::Payload, &[]).expect("a plan")
}

async fn declare(channel: &Channel, queue: &str, arguments: &[(&str, AMQPValue)]) {
    let mut table = FieldTable::default();
    for (name, value) in arguments {
        table.insert((*name).into(), value.clone());
    }
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.into(), options, table).await.expect("a queue");
}

async fn bind(channel: &Channel, exchange: &str, kind: ExchangeKind, routing_key: &str, queue: &str) {
    let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    channel
        .exchange_declare(exchange.into(), kind, options, FieldTable::default())
        .await
        .expect("an exchange");
    channel
        .queue_bind(
            queue.into(),
            exchange.into(),
            routing_key.into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
        .expect("a binding");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_arrives_with_all_its_properties() {
    let Some(broker) = Broker::shared() else { return };
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    declare(&channel, "arrive", &[]).await;
    bind(&channel, "arrive.in", ExchangeKind::Topic, "eu.*", "arrive").await;
    let headers = [("shop".to_owned(), "{tag.0}-{queue}".to_owned())];
    let plan = AmqpPlan::new("arrive.in", "{tag.0}.order", AmqpForm::Payload, &headers).expect("a plan");
    let pushed = Pushed::start(plan, &broker.link());
    let mut body = Body::bytes(br#"{"a":1}"#.to_vec());
    body.content_type = "application/json".into();
    body.tags = vec![Tag::new("eu").expect("a tag")];
    pushed.put("order:1/ä", body);
    pushed.until_acked("order:1/ä").await;
    let message = get(&channel, "arrive").await;
    assert_eq!((message.exchange.as_str(), message.routing_key.as_str()), ("arrive.in", "eu.order"));
    assert_eq!(message.data, br#"{"a":1}"#);
    let properties = &message.properties;
    let text = |value: &Option<lapin::types::ShortString>| {
        value.as_ref().map(|text| text.as_str().to_owned()).unwrap_or_default()
    };
    assert_eq!(text(properties.content_type()), "application/json");
    assert_eq!(text(properties.message_id()), format!("tw_{:08x}_1", pushed.queue.instance()));
    assert_eq!((*properties.delivery_mode(), *properties.priority()), (Some(2), Some(0)));
    let sent_s = properties.timestamp().expect("a time");
    let now_s = pushed.queue.now().as_ms() as u64 / 1_000;
    assert!(now_s - sent_s < 60, "{sent_s} {now_s}");
    let headers = properties.headers().as_ref().expect("headers");
    for (name, value) in [
        ("tickwheel-id", text(properties.message_id())),
        ("tickwheel-queue", "close".to_owned()),
        ("tickwheel-key", "order%3A1%2F%C3%A4".to_owned()),
        ("tickwheel-attempt", "1".to_owned()),
        ("tickwheel-tags", "eu".to_owned()),
        ("shop", "eu-close".to_owned()),
    ] {
        assert_eq!(headers.inner().get(name), Some(&AMQPValue::LongString(value.into())), "{name}");
    }
}

/// The broker confirms many messages at once, and a return names no message. Each message must get its own answer nevertheless.
#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_messages_gets_its_own_answer() {
    let Some(broker) = Broker::shared() else { return };
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    declare(&channel, "many", &[("x-queue-type", AMQPValue::LongString("quorum".into()))]).await;
    bind(&channel, "many.in", ExchangeKind::Direct, "known", "many").await;
    let pushed = Pushed::start(plan("many.in", "{tag.0}"), &broker.link());
    const COUNT: usize = 3_000;
    for number in 0..COUNT {
        let mut body = Body::bytes(format!("{number}"));
        let tag = if number % 7 == 3 { "unknown" } else { "known" };
        body.tags = vec![Tag::new(tag).expect("a tag")];
        pushed.put(&format!("{number}"), body);
    }
    let unknown = (0..COUNT).filter(|number| number % 7 == 3).count();
    let known = COUNT - unknown;
    pushed
        .until("all are settled", |pushed| {
            pushed.count("acked") as usize >= known
                && (0..COUNT).filter(|n| n % 7 == 3).all(|n| pushed.death(&n.to_string()).is_some())
        })
        .await;
    assert_eq!(pushed.count("acked") as usize, known);
    assert_eq!(pushed.count("failed") as usize, 3 * unknown, "each is tried as often as its policy says");
    assert_eq!(pushed.reason(), "returned: 312 NO_ROUTE");
    assert_eq!(pushed.death("3"), Some(Death::MaxAttempts));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..known {
        seen.insert(String::from_utf8(get(&channel, "many").await.data).expect("text"));
    }
    assert_eq!(seen.len(), known, "what was confirmed is there");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_that_is_not_there_is_a_failure_of_the_target() {
    let Some(broker) = Broker::shared() else { return };
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    let link = broker.link();
    let missing = Pushed::start(plan("later.in", "a"), &link);
    declare(&channel, "later", &[]).await;
    let other = Pushed::start(plan("", "later"), &link);
    for number in 0..20 {
        missing.put(&format!("{number}"), Body::bytes(b"missing".to_vec()));
    }
    // A message that is sent while the channel is being closed has the state of the channel for a reason. The first one on the next channel
    // has the broker's.
    missing
        .until("given back for the broker's reason", |pushed| {
            pushed.count("given_back") >= 8 && pushed.had_reason("404 NOT_FOUND")
        })
        .await;
    assert_eq!(missing.count("failed"), 0);
    // The targets share a connection, and the closed channel is of one of them.
    other.put("1", Body::bytes(b"other".to_vec()));
    other.until_acked("1").await;
    assert_eq!(other.count("given_back"), 0);
    assert!(matches!(link.state(), LinkState::Up(_)));
    bind(&channel, "later.in", ExchangeKind::Direct, "a", "later").await;
    for number in 0..20 {
        missing.until_acked(&format!("{number}")).await;
    }
    assert_eq!(missing.count("acked"), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_broker_refuses_is_tried_again() {
    let Some(broker) = Broker::shared() else { return };
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    let full = [
        ("x-max-length", AMQPValue::LongInt(1)),
        ("x-overflow", AMQPValue::LongString("reject-publish".into())),
    ];
    declare(&channel, "full", &full).await;
    let pushed = Pushed::start(plan("", "full"), &broker.link());
    pushed.put("first", Body::bytes(b"1".to_vec()));
    pushed.until_acked("first").await;
    pushed.put("second", Body::bytes(b"2".to_vec()));
    pushed.until("dead", |pushed| pushed.death("second").is_some()).await;
    assert_eq!((pushed.death("second"), pushed.count("failed")), (Some(Death::MaxAttempts), 3));
    assert_eq!(pushed.reason(), "the broker refused the message (basic.nack)");
    channel.queue_purge("full".into(), QueuePurgeOptions::default()).await.expect("emptied");
    pushed.put("third", Body::bytes(b"3".to_vec()));
    pushed.until_acked("third").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_large_is_dead_at_once_and_the_others_arrive() {
    let Some(broker) = Broker::shared() else { return };
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    declare(&channel, "large", &[]).await;
    let pushed = Pushed::start(plan("", "large"), &broker.link());
    for number in 0..50 {
        pushed.put(&format!("small {number}"), Body::bytes(vec![b'a'; 100 + number]));
    }
    pushed.put("large", Body::bytes(vec![b'a'; MESSAGE_BYTES_MAX + 1]));
    pushed.put("fits", Body::bytes(vec![b'a'; MESSAGE_BYTES_MAX]));
    pushed.until("dead", |pushed| pushed.death("large").is_some()).await;
    assert_eq!(pushed.death("large"), Some(Death::TooLarge));
    pushed.until_acked("fits").await;
    for number in 0..50 {
        pushed.until_acked(&format!("small {number}")).await;
    }
    assert_eq!(pushed.count("failed"), 0);
    // Headers that do not fit into a frame never reach the broker.
    let headers = [("long".to_owned(), "x".repeat(140_000))];
    let plan = AmqpPlan::new("", "large", AmqpForm::Payload, &headers).expect("a plan");
    let pushed = Pushed::start(plan, &broker.link());
    pushed.put("1", Body::bytes(b"1".to_vec()));
    pushed.until("dead", |pushed| pushed.death("1").is_some()).await;
    assert_eq!(pushed.death("1"), Some(Death::TooLarge));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_told_by_the_link() {
    let Some(broker) = Broker::shared() else { return };
    let link = Arc::new(Link::new(AmqpDial::new(broker.plan("wrong"))));
    let pushed = Pushed::start(plan("", "nothing"), &link);
    pushed.put("1", Body::bytes(b"1".to_vec()));
    pushed.until("given back", |pushed| pushed.count("given_back") >= 2).await;
    let LinkState::Down(_, reason) = link.state() else { panic!("{:?}", link.state()) };
    assert!(reason.contains("403 ACCESS_REFUSED") && !reason.contains("wrong"), "{reason}");
    assert_eq!((pushed.count("failed"), pushed.task("1").expect("live").extra.tally.leases), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_killed_with_messages_unconfirmed_loses_none() {
    let Some(broker) = Broker::start() else { return };
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    declare(&channel, "kill", &[("x-queue-type", AMQPValue::LongString("quorum".into()))]).await;
    drop((channel, client));
    broker.keep_queues();
    let link = broker.link();
    let pushed = Pushed::start(plan("", "kill"), &link);
    const COUNT: usize = 4_000;
    for number in 0..COUNT {
        pushed.put(&format!("{number}"), Body::bytes(format!("{number}")));
    }
    pushed.until("some are confirmed", |pushed| pushed.count("acked") >= 100).await;
    broker.kill();
    pushed.until("given back", |pushed| pushed.count("given_back") > 0).await;
    until("the link is down", || matches!(link.state(), LinkState::Down(..))).await;
    let before = pushed.count("acked") as usize;
    assert!(before < COUNT, "the kill came too late");
    assert_eq!(pushed.count("failed"), 0, "no attempt is used up");
    broker.run();
    pushed.until("all are confirmed", |pushed| pushed.count("acked") as usize == COUNT).await;
    assert_eq!(pushed.count("failed"), 0);
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    while seen.len() < COUNT {
        let message = get(&channel, "kill").await;
        *seen.entry(String::from_utf8(message.data).expect("text")).or_default() += 1;
    }
    let again: usize = seen.values().map(|count| count - 1).sum();
    assert!(again <= 512, "at most the unconfirmed ones come again: {again}");
    drop(pushed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_packed_message_is_published_as_it_was() {
    let Some(broker) = Broker::shared() else { return };
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    declare(&channel, "packed", &[]).await;
    bind(&channel, "packed.in", ExchangeKind::Direct, "eu", "packed").await;
    let plan = AmqpPlan::new("packed.in", "", AmqpForm::Unpacked, &[]).expect("a plan");
    let pushed = Pushed::start(plan, &broker.link());
    let mut headers = FieldTable::default();
    headers.insert("x-delay".into(), AMQPValue::LongLongInt(5_000));
    headers.insert("decimal".into(), AMQPValue::Double(1.5));
    headers.insert("bytes".into(), AMQPValue::ByteArray(vec![0, 255].into()));
    let properties = BasicProperties::default()
        .with_headers(headers.clone())
        .with_priority(3)
        .with_correlation_id("c".into())
        .with_user_id("shop".into())
        .with_message_id("m".into());
    let packed =
        Packed { exchange: "orders".into(), routing_key: "eu".into(), properties, body: b"body".to_vec() };
    let mut body = Body::bytes(packed.pack());
    body.content_type = CONTENT_TYPE_PACKED.into();
    pushed.put("1", body);
    pushed.until_acked("1").await;
    let message = get(&channel, "packed").await;
    headers.insert("x-delay".into(), AMQPValue::LongInt(-5_000));
    headers.insert("tickwheel-user-id".into(), AMQPValue::LongString("shop".into()));
    let expected = BasicProperties::default()
        .with_headers(headers)
        .with_priority(3)
        .with_correlation_id("c".into())
        .with_message_id("m".into());
    assert_eq!((message.properties.clone(), message.data.as_slice()), (expected, b"body".as_slice()));
    // Another payload is refused.
    pushed.put("2", Body::bytes(b"other".to_vec()));
    pushed.until("dead", |pushed| pushed.death("2").is_some()).await;
    assert_eq!(pushed.death("2"), Some(Death::Refused));
}
