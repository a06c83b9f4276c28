//! Pushes orders into a stream of NATS JetStream when they are due, and reads them with a pull consumer.
//!
//! ```sh
//! nats-server -js &
//! cargo run -p tickwheel-examples --bin push_nats
//! ```
//!
//! The argument is the address of another server: `-- 127.0.0.1:4223`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use async_nats::header::NATS_MESSAGE_ID;
use async_nats::jetstream;
use async_nats::jetstream::consumer::pull;
use async_nats::jetstream::stream::Config;
use tickwheel_examples::broker::{Broker, next};
use tickwheel_examples::pushed_orders::{Arrival, PushedOrders};
use tickwheel_push::broker::{ContentForm, Link};
use tickwheel_push::nats::{NatsConnection, NatsPlan, NatsSink};

#[tokio::main]
async fn main() -> Result<()> {
    let broker = Broker::named("127.0.0.1:4222", "nats-server -js &");
    let orders = PushedOrders::open()?;
    let name = orders.place();

    let client = broker.reached(async_nats::connect(&broker.address)).await?;
    let jetstream = jetstream::new(client);
    let config = Config { name: name.clone(), subjects: vec![format!("{name}.>")], ..Config::default() };
    let stream = jetstream.create_stream(config).await;
    let stream = stream.context("make a stream; a server without JetStream has none: nats-server -js &")?;
    let consumer = stream.create_consumer(pull::Config::default()).await.context("make a consumer")?;
    let mut messages = consumer.messages().await?;

    let link = Arc::new(Link::new(NatsConnection::new(vec![broker.endpoint()?])));
    let subject = format!("{name}.{{queue}}");
    let plan = NatsPlan::new(&subject, &name, ContentForm::Payload, &[], Duration::from_secs(10))?;
    orders
        .follow(NatsSink::new(link, plan), async || {
            let message = next(&mut messages).await?;
            message.ack().await.map_err(Error::from_boxed)?;
            let id = message.headers.as_ref().and_then(|headers| headers.get(NATS_MESSAGE_ID));
            let id = id.context("a message without an id")?.to_string();
            Ok(Arrival { id, payload: message.payload.to_vec() })
        })
        .await?;

    jetstream.delete_stream(&name).await.context("remove the stream")?;
    Ok(())
}
