//! The bare client of each kind: it sends the same bytes with the same number under way, and there is no queue, no lease and no ack.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use async_nats::HeaderMap;
use async_nats::jetstream::message::PublishMessage;
use http_body_util::BodyExt as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use krafka::producer::Acks;
use krafka::{Kafka, Record};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Confirmation, ConnectionProperties};
use redis::{AsyncConnectionConfig, Value, cmd};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::kind::Kind;
use super::progress::Progress;
use super::raw;
use super::sample_message::{CONTENT_TYPE, SampleMessage, key};
use super::sinks::{PLACE, requests, signing_key};

/// Sends all messages of a measurement.
pub(super) async fn send_all(
    kind: Kind,
    address: SocketAddr,
    message: Arc<SampleMessage>,
    progress: Arc<Progress>,
) -> anyhow::Result<()> {
    let in_flight = kind.in_flight();
    match kind {
        Kind::Webhook => webhook(address, in_flight, message, progress).await,
        Kind::Kafka => kafka(address, in_flight, message, progress).await,
        Kind::Nats => nats(address, in_flight, message, progress).await,
        Kind::Redis => redis(address, in_flight, message, progress).await,
        Kind::Amqp => amqp(address, in_flight, message, progress).await,
        Kind::Beanstalk => {
            let put = move || raw::put_all(address, in_flight, message.payload(), &progress);
            tokio::task::spawn_blocking(put).await?
        }
    }
}

/// Runs tasks that each send one message after the other.
async fn side_by_side<F: Future<Output = anyhow::Result<()>> + Send + 'static>(
    in_flight: usize,
    progress: &Arc<Progress>,
    send: impl Fn(u64) -> F + Clone + Send + 'static,
) -> anyhow::Result<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..in_flight {
        let (progress, send) = (Arc::clone(progress), send.clone());
        tasks.spawn(async move {
            while let Some(n) = progress.take() {
                send(n).await?;
                progress.confirm();
            }
            anyhow::Ok(())
        });
    }
    all(tasks).await
}

async fn all(mut tasks: JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn webhook(
    address: SocketAddr,
    in_flight: usize,
    message: Arc<SampleMessage>,
    progress: Arc<Progress>,
) -> anyhow::Result<()> {
    let key = signing_key()?;
    let request = requests(address)?.request(&message.message, [&key])?;
    let mut tasks = JoinSet::new();
    for _ in 0..in_flight {
        let (request, progress) = (request.clone(), Arc::clone(&progress));
        tasks.spawn(async move {
            let stream = TcpStream::connect(address).await.context("connect to the receiver")?;
            stream.set_nodelay(true)?;
            let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            while progress.take().is_some() {
                let answer = requests.send_request(request.clone()).await?;
                ensure!(answer.status().is_success(), "the receiver answered {}", answer.status());
                answer.into_body().collect().await?;
                // The connection is free a moment after the end of the body.
                requests.ready().await?;
                progress.confirm();
            }
            anyhow::Ok(())
        });
    }
    all(tasks).await
}

async fn kafka(
    address: SocketAddr,
    in_flight: usize,
    message: Arc<SampleMessage>,
    progress: Arc<Progress>,
) -> anyhow::Result<()> {
    let kafka = Kafka::builder(address.to_string()).connect().await.context("connect to Kafka")?;
    // The settings of the sink.
    let producer = kafka.producer().acks(Acks::All).idempotent(true).linger(Duration::ZERO);
    let producer = Arc::new(producer.metrics_push(false).build().await?);
    let sending = Arc::clone(&producer);
    side_by_side(in_flight, &progress, move |n| {
        let (producer, message) = (Arc::clone(&sending), Arc::clone(&message));
        async move {
            let mut record = Record::new(PLACE, message.payload().to_vec()).key(key(n));
            for (name, value) in message.headers(n) {
                record = record.header(name, value);
            }
            // The place of the record is of no interest.
            let _metadata = producer.send(record.header("content-type", CONTENT_TYPE)).await?;
            Ok(())
        }
    })
    .await?;
    producer.close().await?;
    Ok(())
}

async fn nats(
    address: SocketAddr,
    in_flight: usize,
    message: Arc<SampleMessage>,
    progress: Arc<Progress>,
) -> anyhow::Result<()> {
    let client = async_nats::connect(address.to_string()).await.context("connect to NATS")?;
    let context = async_nats::jetstream::new(client);
    side_by_side(in_flight, &progress, move |n| {
        let (context, message) = (context.clone(), Arc::clone(&message));
        async move {
            let mut headers = HeaderMap::new();
            for (name, value) in message.headers(n) {
                headers.insert(name, value);
            }
            headers.insert("content-type", CONTENT_TYPE);
            let published = PublishMessage::build()
                .headers(headers)
                .message_id(message.id(n))
                .expected_stream(PLACE)
                .payload(message.payload().to_vec().into());
            context.send_publish(PLACE.to_owned(), published).await?.await?;
            Ok(())
        }
    })
    .await
}

async fn redis(
    address: SocketAddr,
    in_flight: usize,
    message: Arc<SampleMessage>,
    progress: Arc<Progress>,
) -> anyhow::Result<()> {
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let client = redis::Client::open(format!("redis://{address}"))?;
    let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    side_by_side(in_flight, &progress, move |n| {
        let (mut connection, message) = (connection.clone(), Arc::clone(&message));
        async move {
            let mut command = cmd("XADD");
            command.arg(PLACE).arg("*").arg("id").arg(message.id(n));
            for (name, value) in message.headers(n).filter(|(name, _)| name != "tickwheel-id") {
                command.arg(name).arg(value);
            }
            command.arg("content-type").arg(CONTENT_TYPE).arg("payload").arg(message.payload());
            command.query_async::<Value>(&mut connection).await?;
            Ok(())
        }
    })
    .await
}

/// Opens a connection to RabbitMQ.
pub(super) async fn amqp_connection(address: SocketAddr) -> anyhow::Result<lapin::Connection> {
    let uri = format!("amqp://guest:guest@{address}/%2f");
    let connection = lapin::Connection::connect(&uri, ConnectionProperties::default()).await;
    connection.context("connect to RabbitMQ")
}

/// One task publishes, and another waits for the confirms in their order: the client crate wants the messages of a channel from one task.
async fn amqp(
    address: SocketAddr,
    in_flight: usize,
    message: Arc<SampleMessage>,
    progress: Arc<Progress>,
) -> anyhow::Result<()> {
    let connection = amqp_connection(address).await?;
    let channel = connection.create_channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    // The place of the message that is waited for is not in the list.
    let (sender, mut confirms) = mpsc::channel(in_flight - 1);
    let mut tasks = JoinSet::new();
    let confirming = Arc::clone(&progress);
    // The last handle closes the channel, so one is kept until all messages are confirmed.
    let publishing = channel.clone();
    tasks.spawn(async move {
        let options = BasicPublishOptions { mandatory: true, immediate: false };
        while let Some(n) = progress.take() {
            let place = sender.reserve().await?;
            let mut table = FieldTable::default();
            for (name, value) in message.headers(n) {
                table.insert(ShortString::from(name), AMQPValue::LongString(value.into()));
            }
            let properties = BasicProperties::default()
                .with_content_type(CONTENT_TYPE.into())
                .with_headers(table)
                .with_delivery_mode(2)
                .with_priority(0)
                .with_message_id(message.id(n).into())
                .with_timestamp(1_800_000_000);
            let (exchange, payload) = (ShortString::default(), message.payload());
            place.send(publishing.basic_publish(exchange, PLACE.into(), options, payload, properties).await?);
        }
        anyhow::Ok(())
    });
    tasks.spawn(async move {
        while let Some(confirm) = confirms.recv().await {
            let confirmed = confirm.await?;
            ensure!(matches!(confirmed, Confirmation::Ack(None)), "RabbitMQ answered {confirmed:?}");
            confirming.confirm();
        }
        anyhow::Ok(())
    });
    all(tasks).await?;
    channel.close(200, "done".into()).await?;
    connection.close(200, "done".into()).await?;
    Ok(())
}
