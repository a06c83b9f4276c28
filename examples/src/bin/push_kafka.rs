//! Pushes orders into a topic of Kafka when they are due, and reads its records.
//!
//! ```sh
//! tansu broker --listener-url tcp://127.0.0.1:9092 --advertised-listener-url tcp://localhost:9092 --storage-engine memory://tansu/ &
//! cargo run -p tickwheel-examples --bin push_kafka
//! ```
//!
//! Each broker that speaks the protocol of Kafka will do. This one, tansu, is the one that the tests of the example start. The argument is the
//! address of another: `-- 127.0.0.1:9093`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use krafka::Kafka;
use krafka::admin::{CreateTopicsOptions, DeleteTopicsOptions, NewTopic};
use krafka::consumer::AutoOffsetReset;
use tickwheel_examples::broker::Broker;
use tickwheel_examples::pushed_orders::{Arrival, PushedOrders};
use tickwheel_push::broker::{ContentForm, Link};
use tickwheel_push::kafka::{KafkaConnection, KafkaPlan, KafkaSink};

const START: &str = "tansu broker --listener-url tcp://127.0.0.1:9092 \
    --advertised-listener-url tcp://localhost:9092 --storage-engine memory://tansu/ &";

#[tokio::main]
async fn main() -> Result<()> {
    let broker = Broker::named("127.0.0.1:9092", START);
    let orders = PushedOrders::open()?;
    let topic = orders.place();

    let kafka = broker.reached(Kafka::builder(broker.address.clone()).connect()).await?;
    let admin = kafka.admin();
    let made = admin.create_topics([NewTopic::new(&topic, 1, 1)?], CreateTopicsOptions::default()).await?;
    for made in made.into_values() {
        made.context("make the topic")?;
    }
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = consumer.build().await?;
    consumer.assign(&topic, vec![0]).await?;
    let mut records = VecDeque::new();

    let link = Arc::new(Link::new(KafkaConnection::new(vec![broker.endpoint()?])));
    // Records with the same key are in one partition, in the order in which they were due.
    let plan = KafkaPlan::new(&topic, Some("{key}"), ContentForm::Payload, &[], Duration::from_secs(10))?;
    orders
        .follow(KafkaSink::new(link, plan), async || {
            let record = loop {
                match records.pop_front() {
                    Some(record) => break record,
                    None => records.extend(consumer.poll(Duration::from_millis(200)).await?),
                }
            };
            let id = record.headers.iter().find(|(name, _)| &**name == "tickwheel-id");
            let id = id.and_then(|(_, id)| id.as_ref()).context("a record without an id")?;
            let payload = record.value.context("a record without a value")?.to_vec();
            Ok(Arrival { id: String::from_utf8(id.to_vec())?, payload })
        })
        .await?;

    let removed = admin.delete_topics([&topic], DeleteTopicsOptions::default()).await?;
    for removed in removed.into_values() {
        removed.context("remove the topic")?;
    }
    Ok(())
}
