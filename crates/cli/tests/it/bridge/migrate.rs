//! `--migrate`: the bindings of the old exchange, at a broker with the management API.

use std::process::Output;

use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, ExchangeBindOptions, ExchangeDeclareOptions,
    QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, ExchangeKind};
use serde_json::Value;

use crate::bridge::programs::{Program, tickwheel};
use crate::bridge::publisher::connect;
use crate::rabbit::Broker;

/// The steps for the bindings of [`declare`].
const STEPS: [&str; 5] = [
    "declare exchange orders.due (direct)",
    "bind exchange audit to orders.due with key us",
    "bind queue shop.eu to orders.due with key eu",
    "bind queue shop.eu to orders.due with key eu/ä and arguments {\"limit\":7,\"region\":\"eu\",\"x\":true}",
    "bind queue shop.us to orders.due with key us",
];

/// The output of a run.
struct Run {
    code: Option<i32>,
    lines: Vec<String>,
    said: String,
}

impl Run {
    fn of(output: &Output) -> Self {
        let mut lines: Vec<String> =
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        // The broker lists bindings in any order. The declare stays in front.
        lines.sort_by_key(|line| (!line.starts_with("declare"), line.clone()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Self { code: output.status.code(), lines, said }
    }
}

/// Runs a migration. `login`: the part of the URL of the API in front of its host.
fn migrate(broker: &Broker, login: &str, options: &[&str]) -> Run {
    let url = format!("http://{login}{}", broker.management());
    let mut command = tickwheel(&["bridge", "rabbitmq", "--migrate", "--management-url", &url]);
    // The password of the broker is not in the command line.
    command.args(["--url", &broker.uri().replace("guest:guest@", "guest@")]).args(options);
    tokio::task::block_in_place(|| {
        Run::of(&command.env("TICKWHEEL_RABBITMQ_PASSWORD", "guest").output().expect("the program runs"))
    })
}

/// Makes the exchange `orders` as publishers and consumers had it. The plugin is not installed, so the exchange is a plain one.
async fn declare(channel: &Channel) {
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let none = FieldTable::default;
    for (exchange, kind) in
        [("orders", ExchangeKind::Direct), ("audit", ExchangeKind::Fanout), ("events", ExchangeKind::Topic)]
    {
        channel.exchange_declare(exchange.into(), kind, durable, none()).await.expect("an exchange");
    }
    for queue in ["shop.eu", "shop.us", "audited"] {
        let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(queue.into(), options, none()).await.expect("a queue");
    }
    let mut arguments = none();
    arguments.insert("region".into(), AMQPValue::LongString("eu".into()));
    arguments.insert("limit".into(), AMQPValue::LongInt(7));
    arguments.insert("x".into(), AMQPValue::Boolean(true));
    for (exchange, queue, key, arguments) in [
        ("orders", "shop.eu", "eu", none()),
        ("orders", "shop.eu", "eu/ä", arguments),
        ("orders", "shop.us", "us", none()),
        ("audit", "audited", "", none()),
    ] {
        let options = QueueBindOptions::default();
        channel
            .queue_bind(queue.into(), exchange.into(), key.into(), options, arguments)
            .await
            .expect("a binding");
    }
    for (source, destination, key) in [("orders", "audit", "us"), ("events", "orders", "#")] {
        let options = ExchangeBindOptions::default();
        channel
            .exchange_bind(destination.into(), source.into(), key.into(), options, none())
            .await
            .expect("a binding");
    }
}

/// Returns the bindings from an exchange without its name, as the API lists them.
fn bindings(broker: &Broker, exchange: &str) -> Vec<String> {
    let url = format!("http://{}/api/exchanges/%2F/{exchange}/bindings/source", broker.management());
    // guest:guest
    let call = ureq::get(&url).header("authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=").call();
    let text = call.expect("an answer").body_mut().read_to_string().expect("a text");
    let list: Vec<Value> = serde_json::from_str(&text).expect("a list");
    let facts = ["destination", "destination_type", "routing_key", "arguments"];
    let mut lines: Vec<String> =
        list.iter().map(|binding| format!("{:?}", facts.map(|name| binding[name].to_string()))).collect();
    lines.sort();
    lines
}

async fn publish(channel: &Channel, exchange: &str, key: &str) {
    let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
    let confirm = channel.basic_publish(exchange.into(), key.into(), options, key.as_bytes(), properties);
    confirm.await.expect("published").await.expect("confirmed");
}

async fn taken(channel: &Channel, queue: &str) -> Option<Vec<u8>> {
    let message = channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await;
    message.expect("the broker answers").map(|message| message.delivery.data)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bindings_of_the_old_exchange_move_with_yes_only() {
    let Some(broker) = tokio::task::block_in_place(Broker::start_managed) else { return };
    let connection = connect(&broker.uri()).await;
    let channel = connection.create_channel().await.expect("a channel");
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    refusals(&broker);
    declare(&channel).await;
    let before = bindings(&broker, "orders");

    // The dry run, twice: the first changes nothing.
    for _ in 0..2 {
        let dry = migrate(&broker, "", &["--exchange", "orders"]);
        assert_eq!(
            (dry.code, dry.lines.as_slice()),
            (Some(0), STEPS.map(str::to_owned).as_slice()),
            "{}",
            dry.said
        );
        assert!(dry.said.contains("nothing was changed; add --yes to make the steps (5)"), "{}", dry.said);
        assert!(dry.said.contains("the exchange events is bound to orders with key #"), "{}", dry.said);
        assert!(dry.said.contains("delete orders, because the type"), "{}", dry.said);
        assert!(!dry.said.contains("every user of this machine"), "{}", dry.said);
    }
    let typed = migrate(&broker, "", &["--exchange", "orders", "--type", "topic", "--yes"]);
    assert!(typed.code == Some(1) && typed.said.contains("add --type direct"), "{}", typed.said);

    // Only its own connection may bind an exclusive queue. This step fails, and the others are made.
    let exclusive = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare("mine".into(), exclusive, FieldTable::default()).await.expect("a queue");
    let (options, none) = (QueueBindOptions::default(), FieldTable::default());
    channel.queue_bind("mine".into(), "orders".into(), "eu".into(), options, none).await.expect("a binding");
    let made = migrate(&broker, "", &["--exchange", "orders", "--yes"]);
    assert_eq!(made.code, Some(1), "{}", made.said);
    assert!(made.said.contains("failed to bind queue mine to orders.due with key eu: "), "{}", made.said);
    assert!(made.said.contains("1 of 6 steps failed"), "{}", made.said);
    let done = STEPS.map(|step| step.replacen("declare", "declared", 1).replacen("bind", "bound", 1));
    assert_eq!(made.lines, done, "{}", made.said);
    channel.queue_delete("mine".into(), Default::default()).await.expect("deleted");

    assert_eq!(bindings(&broker, "orders.due"), before);
    assert_eq!(bindings(&broker, "orders"), before, "nothing is deleted");
    let again = migrate(&broker, "guest:guest@", &["--exchange", "orders", "--yes"]);
    assert_eq!((again.code, again.lines.len()), (Some(0), 0), "{}", again.said);
    assert!(again.said.contains("nothing to do"), "{}", again.said);
    assert!(again.said.contains("every user of this machine"), "{}", again.said);
    for (key, queues) in
        [("eu", ["shop.eu"].as_slice()), ("eu/ä", &["shop.eu"]), ("us", &["shop.us", "audited"])]
    {
        publish(&channel, "orders.due", key).await;
        for queue in queues {
            assert_eq!(taken(&channel, queue).await.as_deref(), Some(key.as_bytes()), "{queue}");
        }
    }
    bridged(&broker, &channel).await;
}

/// The bridge takes the exchange of due messages as the migration made it, and a migration after its start has nothing to do.
async fn bridged(broker: &Broker, channel: &Channel) {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("bridge");
    let data = data.to_str().expect("UTF-8");
    let moved =
        migrate(broker, "", &["--exchange", "orders2", "--old-exchange", "orders", "--data", data, "--yes"]);
    assert_eq!((moved.code, moved.lines.len()), (Some(0), STEPS.len()), "{}", moved.said);
    assert!(moved.said.contains("let the publishers publish to orders2"), "{}", moved.said);
    channel.exchange_delete("orders".into(), Default::default()).await.expect("deleted");
    for exchange in ["orders", "orders2"] {
        let options = ["--exchange", exchange, "--data", data];
        let bridge = tokio::task::block_in_place(|| Program::bridge(broker, &options));
        tokio::task::block_in_place(|| bridge.stop());
        let after = migrate(broker, "", &["--exchange", exchange]);
        assert_eq!((after.code, after.lines.len()), (Some(0), 0), "{}", after.said);
        assert!(after.said.contains("is the exchange of the bridge already"), "{}", after.said);
    }
}

/// A migration that cannot begin names the cause.
fn refusals(broker: &Broker) {
    let unknown = migrate(broker, "", &["--exchange", "nothing", "--yes"]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.said);
    assert!(
        unknown.said.contains("there is no exchange `nothing` in the virtual host `/`"),
        "{}",
        unknown.said
    );
    let wrong = migrate(broker, "guest:wrong@", &["--exchange", "orders"]);
    assert_eq!(wrong.code, Some(1), "{}", wrong.said);
    assert!(wrong.said.contains("refuses the user `guest`"), "{}", wrong.said);
    assert!(!wrong.said.contains(":wrong"), "{}", wrong.said);
    broker.control(&["add_user", "plain", "marker"]);
    let plain = migrate(broker, "plain:marker@", &["--exchange", "orders"]);
    assert_eq!(plain.code, Some(1), "{}", plain.said);
    assert!(plain.said.contains("give the user the tag `management`"), "{}", plain.said);
    assert!(plain.said.contains("Not management user") && !plain.said.contains("marker"), "{}", plain.said);
}

#[test]
fn a_broker_without_the_management_api_is_named() {
    let url = format!("http://127.0.0.1:{}", tickwheel_testing::free_port());
    let command =
        ["bridge", "rabbitmq", "--url", "amqp://guest@a.example", "--exchange", "orders", "--migrate"];
    let output = tickwheel(&command).args(["--management-url", &url]).output().expect("the program runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&url) && text.contains("rabbitmq-plugins enable rabbitmq_management"), "{text}");
    assert!(text.contains("refused"), "{text}");
}

#[test]
fn the_options_of_a_migration_belong_to_it() {
    let url = ["bridge", "rabbitmq", "--url", "amqp://a.example", "--exchange", "orders", "--data", "a"];
    for more in [["--yes"].as_slice(), &["--old-exchange", "b"], &["--management-url", "http://a"]] {
        let output = tickwheel(&url).args(more).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}
