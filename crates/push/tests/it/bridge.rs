//! The bridge against a real RabbitMQ broker, with a queue of Tickwheel behind it and the amqp sink.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::kit::{foreign, until};
use crate::rabbit::{Broker, get};
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions,
    QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, ExchangeKind};
use tickwheel_push::amqp::{AmqpSink, delay_of};
use tickwheel_push::bridge::{
    Bridge, BridgeCounts, BridgeError, BridgeFigures, BridgePlan, ExchangeType, KeySource, QueueStore,
};
use tickwheel_push::dispatch::{BreakerPlan, Plan};
use tickwheel_push::{Push, Target};
use tickwheel_queue::{Get, Key, Queue, QueueName};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A bridge with its queue and the target behind it.
struct Bridged {
    queue: Queue,
    name: QueueName,
    push: Push,
    figures: Arc<BridgeFigures>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), BridgeError>>,
}

impl Bridged {
    fn start(broker: &Broker, queue: Queue, plan: &BridgePlan) -> Self {
        let name = QueueName::new(&format!("rabbit/{}", plan.due_exchange())).expect("a name");
        let link = broker.link();
        let (push, _) = Push::new(&queue);
        let sink = AmqpSink::new(Arc::clone(&link), plan.target().expect("a target"));
        let breaker = BreakerPlan { failures: 5, open_ms: 50, open_max_ms: 500 };
        let target = Plan { concurrency: 512, timeout_ms: 10_000, breaker, ..Plan::default() };
        push.set(&name, Target { plan: target, ..Target::new(Arc::new(sink)) });
        let bridge = Bridge::open(plan.clone(), link, Arc::new(QueueStore::new(&queue, &name)));
        let figures = bridge.figures();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(async move {
            bridge
                .run(async move {
                    let _ = stopped.await;
                })
                .await
        });
        Self { queue, name, push, figures, stop, running }
    }

    fn counts(&self) -> BridgeCounts {
        self.figures.counts()
    }

    fn has(&self, key: &str) -> bool {
        let key = Key::new(key).expect("a key");
        self.queue.get(Get { queue: self.name.clone(), key }).wait().is_ok()
    }

    /// Stops the bridge as a program does that is asked to end.
    async fn stop(self) -> Queue {
        self.stop.send(()).expect("it runs");
        self.running.await.expect("no panic").expect("it has worked");
        self.push.stop(Duration::from_secs(60)).await;
        self.queue
    }

    /// Stops the bridge as a crash does: what is on its way is neither finished nor acked.
    async fn crash(self) -> Queue {
        self.running.abort();
        let _ = self.running.await;
        self.push.stop(Duration::from_secs(60)).await;
        self.queue
    }
}

/// A queue behind the exchange of due messages, as a consumer has it.
async fn consumer(channel: &Channel, plan: &BridgePlan, queue: &str, routing_key: &str) {
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.into(), durable, FieldTable::default()).await.expect("a queue");
    let exchange = plan.due_exchange();
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

fn headers(headers: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in headers {
        table.insert((*name).into(), value.clone());
    }
    table
}

/// Publishes a message as any program does that used the plugin.
async fn publish(channel: &Channel, exchange: &str, key: &str, properties: BasicProperties, body: &[u8]) {
    let options = BasicPublishOptions::default();
    let confirm = channel.basic_publish(exchange.into(), key.into(), options, body, properties).await;
    let confirm = confirm.expect("published").await.expect("confirmed");
    assert!(matches!(confirm, Confirmation::Ack(None)), "{confirm:?}");
}

async fn publisher(broker: &Broker) -> (lapin::Connection, Channel) {
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    (client, channel)
}

fn plan(name: &str) -> BridgePlan {
    BridgePlan::new(name, ExchangeType::Direct, &format!("tickwheel.{name}")).expect("a plan")
}

fn memory() -> Queue {
    Queue::options().open_memory().expect("a queue")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_message_arrives_as_it_was_published() {
    let Some(broker) = Broker::shared() else { return };
    let plan = plan("whole");
    let bridged = Bridged::start(&broker, memory(), &plan);
    until("the bridge works", || bridged.counts().sessions == 1).await;
    let (_client, channel) = publisher(&broker).await;
    consumer(&channel, &plan, "whole.eu", "eu").await;
    let table = [
        ("x-delay", AMQPValue::LongInt(300)),
        ("int", AMQPValue::ShortShortInt(-3)),
        ("table", AMQPValue::FieldTable(headers(&[("a", AMQPValue::Void)]))),
        ("list", AMQPValue::FieldArray(vec![AMQPValue::Boolean(true), AMQPValue::Double(0.5)].into())),
    ];
    let properties = |table: FieldTable| {
        BasicProperties::default()
            .with_content_type("application/json".into())
            .with_correlation_id("c".into())
            .with_delivery_mode(1)
            .with_priority(4)
            .with_type("order".into())
            .with_headers(table)
    };
    let begun = Instant::now();
    publish(&channel, "whole", "eu", properties(headers(&table)), b"{}").await;
    let message = get(&channel, "whole.eu").await;
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?}");
    let mut expected = headers(&table);
    expected.insert("x-delay".into(), AMQPValue::LongInt(-300));
    assert_eq!(message.properties, properties(expected));
    assert_eq!(message.data, b"{}");
    assert_eq!((message.exchange.as_str(), message.routing_key.as_str()), ("whole.due", "eu"));
    // A message without a delay goes on at once.
    publish(&channel, "whole", "eu", BasicProperties::default(), b"now").await;
    let message = get(&channel, "whole.eu").await;
    assert_eq!(
        (message.data.as_slice(), &message.properties),
        (b"now".as_slice(), &BasicProperties::default())
    );
    until("all are acked", || bridged.counts().stored == 2).await;
    bridged.stop().await;
}

/// A program of Python as it was for the plugin, but for the type of the exchange.
const IN_PYTHON: &str = r#"
import sys, pika
connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1]))
channel = connection.channel()
channel.exchange_declare("pika", exchange_type="fanout", durable=True)
channel.confirm_delivery()
for number in range(3):
    properties = pika.BasicProperties(headers={"x-delay": 300 * number, "number": number}, delivery_mode=2)
    channel.basic_publish("pika", "eu", str(number).encode(), properties, mandatory=True)
connection.close()
"#;

/// A program of Node as it was for the plugin, but for the type of the exchange.
const IN_NODE: &str = r#"
const amqplib = require("amqplib");
(async () => {
    const connection = await amqplib.connect(process.argv[1]);
    const channel = await connection.createConfirmChannel();
    await channel.assertExchange("amqplib", "fanout", { durable: true });
    for (let number = 0; number < 3; number++) {
        const headers = { "x-delay": 300 * number, number };
        channel.publish("amqplib", "eu", Buffer.from(String(number)), { headers, persistent: true, mandatory: true });
    }
    await channel.waitForConfirms();
    await connection.close();
})();
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_in_another_language_changes_one_declare() {
    let Some(broker) = Broker::shared() else { return };
    let programs =
        [("pika", foreign::python(IN_PYTHON, "pika")), ("amqplib", foreign::node(IN_NODE, "amqplib"))];
    for (name, program) in programs {
        let Some(mut program) = program else { continue };
        let plan = plan(name);
        let bridged = Bridged::start(&broker, memory(), &plan);
        until("the bridge works", || bridged.counts().sessions == 1).await;
        let (_client, channel) = publisher(&broker).await;
        let queue = format!("{name}.eu");
        consumer(&channel, &plan, &queue, "eu").await;
        let begun = Instant::now();
        let ended = program.arg(broker.uri()).output().expect("the program runs");
        assert!(ended.status.success(), "{name}: {}", String::from_utf8_lossy(&ended.stderr));
        for number in 0..3_i32 {
            let message = get(&channel, &queue).await;
            let took = begun.elapsed();
            assert!(
                took >= Duration::from_millis(300 * number.unsigned_abs() as u64),
                "{name} {number}: {took:?}"
            );
            assert_eq!(message.data, number.to_string().as_bytes());
            let properties = &message.properties;
            assert_eq!(*properties.delivery_mode(), Some(2));
            let table = properties.headers().as_ref().expect("headers");
            let small = match table.inner().get("number") {
                Some(AMQPValue::LongInt(number)) => *number,
                Some(AMQPValue::ShortShortInt(number)) => (*number).into(),
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!((small, delay_of(table)), (number, Some(-300 * i64::from(number))), "{name}");
        }
        bridged.stop().await;
    }
}

/// A program that publishes a routing key that is not UTF-8.
const NOT_UTF_8: &str = r#"
import sys, pika
connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1]))
channel = connection.channel()
channel.confirm_delivery()
channel.basic_publish("odd", b"\xff\xfe", b"odd")
connection.close()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_routing_key_that_is_not_utf_8_stops_the_bridge_and_is_told() {
    let Some(broker) = Broker::shared() else { return };
    let Some(mut program) = foreign::python(NOT_UTF_8, "pika") else { return };
    let bridged = Bridged::start(&broker, memory(), &plan("odd"));
    until("the bridge works", || bridged.counts().sessions == 1).await;
    let ended = program.arg(broker.uri()).output().expect("the program runs");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    until("the bridge has tried again", || bridged.counts().sessions >= 3).await;
    until("it is told", || bridged.figures.trouble().is_some_and(|why| why.contains("not UTF-8"))).await;
    assert_eq!(bridged.counts().received, 0);
    bridged.crash().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_a_key_is_moved_and_cancelled() {
    let Some(broker) = Broker::shared() else { return };
    let mut plan = plan("keyed");
    plan.key = KeySource::MessageId;
    let bridged = Bridged::start(&broker, memory(), &plan);
    until("the bridge works", || bridged.counts().sessions == 1).await;
    let (_client, channel) = publisher(&broker).await;
    consumer(&channel, &plan, "keyed.eu", "eu").await;
    let delayed = |id: &str, ms| {
        let table = headers(&[("x-delay", AMQPValue::LongLongInt(ms))]);
        BasicProperties::default().with_headers(table).with_message_id(id.into())
    };
    publish(&channel, "keyed", "eu", delayed("moved", 3_600_000), b"old").await;
    publish(&channel, "keyed", "eu", delayed("gone", 3_600_000), b"gone").await;
    until("two are kept", || bridged.counts().stored == 2).await;
    assert!(bridged.has("moved") && bridged.has("gone"));
    let cancel = headers(&[
        ("x-delay", AMQPValue::LongInt(-1)),
        ("tickwheel-cancel", AMQPValue::Boolean(true)),
        ("tickwheel-key", AMQPValue::LongString("gone".into())),
    ]);
    publish(&channel, "keyed", "eu", BasicProperties::default().with_headers(cancel), b"").await;
    until("cancelled", || bridged.counts().cancelled == 1).await;
    assert!(!bridged.has("gone"));
    publish(&channel, "keyed", "eu", delayed("moved", 100), b"new").await;
    assert_eq!(get(&channel, "keyed.eu").await.data, b"new");
    until("it is acked", || !bridged.has("moved")).await;
    let rest =
        channel.basic_get("keyed.eu".into(), BasicGetOptions { no_ack: true }).await.expect("an answer");
    assert!(rest.is_none(), "{rest:?}");
    // Messages of one key are taken in their order.
    for number in 0..200 {
        publish(&channel, "keyed", "eu", delayed("order", 3_600_000 + number), b"").await;
    }
    publish(&channel, "keyed", "eu", delayed("order", 50), b"last").await;
    assert_eq!(get(&channel, "keyed.eu").await.data, b"last");
    bridged.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_kept_goes_to_the_refused_ones() {
    let Some(broker) = Broker::shared() else { return };
    let plan = plan("bad");
    let bridged = Bridged::start(&broker, memory(), &plan);
    until("the bridge works", || bridged.counts().sessions == 1).await;
    let (_client, channel) = publisher(&broker).await;
    let century = headers(&[("x-delay", AMQPValue::LongLongInt(i64::MAX))]);
    let bad_key = headers(&[("tickwheel-key", AMQPValue::LongString("a\n".into()))]);
    for (table, reason) in [(century, "ms ahead"), (bad_key, "key")] {
        let properties = BasicProperties::default()
            .with_headers(table)
            .with_expiration("60000".into())
            .with_correlation_id("c".into());
        publish(&channel, "bad", "eu", properties, b"body").await;
        let message = get(&channel, &plan.refused_queue()).await;
        let properties = &message.properties;
        assert_eq!(message.data, b"body");
        assert_eq!(properties.correlation_id().as_ref().map(|id| id.as_str()), Some("c"));
        assert_eq!(properties.expiration(), &None, "a refused message does not expire");
        let table = properties.headers().as_ref().expect("headers").inner();
        let text = |name: &str| match table.get(name) {
            Some(AMQPValue::LongString(text)) => text.to_string(),
            other => panic!("{name}: {other:?}"),
        };
        assert!(text("tickwheel-refused").contains(reason), "{}", text("tickwheel-refused"));
        assert_eq!((text("tickwheel-exchange"), text("tickwheel-routing-key")), ("bad".into(), "eu".into()));
        assert_eq!(text("tickwheel-expiration"), "60000");
    }
    until("they are acked", || bridged.counts().refused == 2).await;
    assert_eq!(bridged.counts().stored, 0);
    bridged.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_of_another_type_is_an_error_that_names_it() {
    let Some(broker) = Broker::shared() else { return };
    let (_client, channel) = publisher(&broker).await;
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let declared =
        channel.exchange_declare("other".into(), ExchangeKind::Topic, durable, FieldTable::default());
    declared.await.expect("an exchange");
    let bridged = Bridged::start(&broker, memory(), &plan("other"));
    let error = bridged.running.await.expect("no panic").expect_err("a topic exchange is no fanout");
    let text = error.to_string();
    assert!(text.contains("inequivalent arg 'type' for exchange 'other'"), "{text}");
}

/// The store is full at first. The messages wait unacked, and none is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_kept_now_waits() {
    use tickwheel_push::bridge::{Delayed, Keeping, Kept, Store};

    struct Later {
        store: QueueStore,
        is_open: Arc<std::sync::atomic::AtomicBool>,
    }

    impl Store for Later {
        fn put<'a>(&'a self, message: &'a Delayed) -> Keeping<'a> {
            if self.is_open.load(std::sync::atomic::Ordering::Relaxed) {
                return self.store.put(message);
            }
            Box::pin(async { Kept::NotNow { reason: "full".to_owned(), after: Duration::from_millis(20) } })
        }

        fn cancel<'a>(&'a self, key: &'a Key) -> Keeping<'a> {
            self.store.cancel(key)
        }
    }

    let Some(broker) = Broker::shared() else { return };
    let plan = plan("later");
    let (queue, name) = (memory(), QueueName::new("rabbit/later").expect("a name"));
    let is_open = Arc::<std::sync::atomic::AtomicBool>::default();
    let store = Later { store: QueueStore::new(&queue, &name), is_open: Arc::clone(&is_open) };
    let bridge = Bridge::open(plan, broker.link(), Arc::new(store));
    let figures = bridge.figures();
    let running = tokio::spawn(async move { bridge.run(std::future::pending()).await });
    until("the bridge works", || figures.counts().sessions == 1).await;
    let (_client, channel) = publisher(&broker).await;
    publish(&channel, "later", "eu", BasicProperties::default(), b"a").await;
    until("it waits", || figures.counts().waits >= 3).await;
    assert_eq!((figures.counts().stored, figures.counts().refused), (0, 0));
    is_open.store(true, std::sync::atomic::Ordering::Relaxed);
    until("it is kept", || figures.counts().stored == 1).await;
    running.abort();
}

const MESSAGES: usize = 2_000;
const DELAY_MS_MAX: u64 = 3_000;

/// Delays of 0 to 3 s, while the broker stops and starts, and the bridge crashes and starts again from its directory. `scripts/bridge` has
/// more messages and kills of all three.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it takes minutes on a busy machine; `scripts/bridge` runs it"]
async fn no_message_is_lost_or_early_while_broker_and_bridge_fail() {
    let Some(broker) = Broker::start() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let plan = plan("storm");
    let open = |path: &Path| Queue::open(path).expect("a queue");
    let bridged = Bridged::start(&broker, open(folder.path()), &plan);
    until("the bridge works", || bridged.counts().sessions == 1).await;
    let (client, channel) = publisher(&broker).await;
    consumer(&channel, &plan, "storm.eu", "eu").await;
    let send = async |numbers: std::ops::Range<usize>, channel: &Channel| {
        let mut confirms = Vec::new();
        for number in numbers {
            let delay_ms = (number as u64 * 7_919) % (DELAY_MS_MAX + 1);
            let table = headers(&[("x-delay", AMQPValue::LongLongInt(delay_ms as i64))]);
            let properties = BasicProperties::default().with_headers(table).with_delivery_mode(2);
            let body = number.to_string();
            let options = BasicPublishOptions::default();
            let sent =
                channel.basic_publish("storm".into(), "eu".into(), options, body.as_bytes(), properties);
            confirms.push(sent.await.expect("published"));
        }
        for confirm in confirms {
            assert!(confirm.await.expect("confirmed").is_ack());
        }
    };
    send(0..MESSAGES / 2, &channel).await;
    until("some are kept", || bridged.counts().stored > 100).await;
    // The bridge crashes, and comes back with its directory.
    let figures = Arc::clone(&bridged.figures);
    let queue = bridged.crash().await;
    let before = figures.counts();
    queue.close();
    drop(queue);
    let bridged = Bridged::start(&broker, open(folder.path()), &plan);
    until("the bridge is back", || bridged.counts().sessions == 1).await;
    send(MESSAGES / 2..MESSAGES, &channel).await;
    drop((channel, client));
    // The broker goes away with messages on both sides of the bridge.
    broker.app("stop_app");
    until("the bridge has noticed", || bridged.figures.trouble().is_some()).await;
    broker.app("start_app");
    // The arrivals below show that all are kept. The counts do not: a crash may come between an ack and its count.
    until("the bridge works again", || bridged.counts().sessions == 2 && bridged.figures.trouble().is_none())
        .await;
    let client = broker.client().await;
    let channel = client.create_channel().await.expect("a channel");
    let mut seen = BTreeMap::<usize, usize>::new();
    let begun = Instant::now();
    while seen.len() < MESSAGES {
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "{} of {MESSAGES} arrived", seen.len());
        let message = channel.basic_get("storm.eu".into(), BasicGetOptions::default()).await;
        let Some(message) = message.expect("the broker answers") else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let number: usize = String::from_utf8_lossy(&message.delivery.data).parse().expect("a number");
        *seen.entry(number).or_default() += 1;
        message.delivery.acker.ack(BasicAckOptions::default()).await.expect("acked");
    }
    let again: usize = seen.values().map(|count| count - 1).sum();
    let counts = bridged.counts();
    assert!(
        again as u64 <= before.redelivered_without_key + counts.redelivered_without_key + 512,
        "{again} came again, {before:?} {counts:?}"
    );
    assert_eq!((before.refused, counts.refused), (0, 0));
    bridged.stop().await;
}

/// No message of a running bridge comes before its time, by the clock of its publisher.
#[tokio::test(flavor = "multi_thread")]
async fn no_message_is_early() {
    let Some(broker) = Broker::shared() else { return };
    let plan = plan("early");
    let bridged = Bridged::start(&broker, memory(), &plan);
    until("the bridge works", || bridged.counts().sessions == 1).await;
    let (_client, channel) = publisher(&broker).await;
    consumer(&channel, &plan, "early.eu", "eu").await;
    for number in 0..200_i64 {
        let delay_ms = number * 7 % 1_000;
        let table = headers(&[("x-delay", AMQPValue::LongLongInt(delay_ms))]);
        let properties = BasicProperties::default().with_headers(table);
        let body = format!("{} {delay_ms}", now_ms());
        publish(&channel, "early", "eu", properties, body.as_bytes()).await;
    }
    for _ in 0..200 {
        let message = get(&channel, "early.eu").await;
        let text = String::from_utf8(message.data).expect("text");
        let (at_ms, delay_ms) = text.split_once(' ').expect("two numbers");
        let due_ms = at_ms.parse::<u64>().expect("a time") + delay_ms.parse::<u64>().expect("a delay");
        let now_ms = now_ms();
        assert!(now_ms >= due_ms, "{text} came at {now_ms}");
    }
    bridged.stop().await;
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.expect("after 1970").as_millis()).expect("it fits")
}
