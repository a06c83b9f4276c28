//! Messages in a second: a target and the bare client, one after the other, against one broker.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use async_nats::jetstream;
use async_nats::jetstream::stream::{Config, StorageType};
use krafka::Kafka;
use krafka::admin::{CreateTopicsOptions, NewTopic};
use lapin::options::{QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use redis::{Value, cmd};
use tickwheel_push::{Attempt, Message, Outcome, Sink};
use tokio::runtime::{Builder, Runtime};

use super::bare;
use super::broker::Broker;
use super::kind::Kind;
use super::progress::{Load, Progress};
use super::pushed::Pushed;
use super::sample_message::SampleMessage;
use super::sinks::{PLACE, plan, sink};
use crate::sample::Sample;

/// The messages that are under way without a broker, as many as with one.
const ALONE_IN_FLIGHT: usize = 512;

/// Returns the runtime of a measurement, with a thread for each core.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("start a runtime")
}

/// One round: messages in a second of the target and of the bare client, and their ratio. Each second round has the other order. Each of the two has a
/// broker of its own, because some brokers become slower with the messages that they have. RabbitMQ takes long to start, so it gets a new queue
/// instead.
pub(super) fn both(
    kind: Kind,
    program: &Path,
    base: &Path,
    load: Load,
    round: u64,
) -> anyhow::Result<Sample> {
    let (mut rates, mut shared) = ([0.0; 2], None);
    for at in 0..2 {
        let which = if round.is_multiple_of(2) { at } else { 1 - at };
        let broker = match shared.take() {
            Some(broker) => broker,
            None => Broker::start(kind, program, base)?,
        };
        let runtime = runtime()?;
        rates[which] = runtime.block_on(async {
            make_place(kind, broker.address).await?;
            match which {
                0 => ours(kind, broker.address, load).await,
                _ => theirs(kind, broker.address, load).await,
            }
        })?;
        // The client crates end their connections before the broker does.
        drop(runtime);
        shared = (kind == Kind::Amqp).then_some(broker);
    }
    let [ours, bare] = rates;
    let mut sample = Sample { measured: load.messages, ..Sample::default() };
    sample.figure("messages_s", ours);
    sample.figure("bare_s", bare);
    sample.figure("messages_s/bare", ours / bare);
    Ok(sample)
}

/// A sink that confirms each message at once.
struct Confirming;

impl Sink for Confirming {
    fn send<'a>(&'a self, _: &'a Message) -> Attempt<'a> {
        Box::pin(async { Outcome::Delivered.into() })
    }
}

/// Returns the messages in a second of a target that confirms each at once. No target is faster on this machine.
pub(super) fn alone(load: Load) -> anyhow::Result<Sample> {
    let rate = runtime()?.block_on(Pushed::rate(load, Arc::new(Confirming), plan(ALONE_IN_FLIGHT)))?;
    let mut sample = Sample { measured: load.messages, ..Sample::default() };
    sample.figure("messages_s", rate);
    Ok(sample)
}

async fn ours(kind: Kind, address: SocketAddr, load: Load) -> anyhow::Result<f64> {
    Pushed::rate(load, sink(kind, address)?, plan(kind.in_flight())).await
}

async fn theirs(kind: Kind, address: SocketAddr, load: Load) -> anyhow::Result<f64> {
    let (message, progress) = (Arc::new(SampleMessage::new()?), Arc::new(Progress::new(load)));
    bare::send_all(kind, address, message, Arc::clone(&progress)).await?;
    progress.rate()
}

/// Makes the place for the messages in a broker.
async fn make_place(kind: Kind, address: SocketAddr) -> anyhow::Result<()> {
    match kind {
        Kind::Webhook | Kind::Beanstalk => {}
        Kind::Kafka => {
            let kafka = Kafka::builder(address.to_string()).connect().await?;
            let topic = NewTopic::new(PLACE, 1, 1)?;
            let made = kafka.admin().create_topics([topic], CreateTopicsOptions::default()).await?;
            made[PLACE].as_ref().map_err(|error| anyhow::anyhow!("make a topic: {error:?}"))?;
        }
        Kind::Nats => {
            let client = async_nats::connect(address.to_string()).await?;
            let (name, subjects) = (PLACE.to_owned(), vec![PLACE.to_owned()]);
            let config = Config { name, subjects, storage: StorageType::Memory, ..Config::default() };
            jetstream::new(client).create_stream(config).await?;
        }
        Kind::Redis => {
            // The server takes connections before it is ready for commands.
            let client = redis::Client::open(format!("redis://{address}"))?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            cmd("DEL").arg(PLACE).query_async::<Value>(&mut connection).await?;
        }
        Kind::Amqp => {
            let connection = bare::amqp_connection(address).await?;
            let channel = connection.create_channel().await?;
            channel.queue_delete(PLACE.into(), QueueDeleteOptions::default()).await?;
            let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
            channel.queue_declare(PLACE.into(), options, FieldTable::default()).await?;
            connection.close(200, "done".into()).await?;
        }
    }
    Ok(())
}
