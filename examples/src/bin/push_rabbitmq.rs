//! Pushes orders to an exchange of RabbitMQ when they are due, and consumes them from a queue that is bound to it.
//!
//! ```sh
//! rabbitmq-server &
//! cargo run -p tickwheel-examples --bin push_rabbitmq
//! ```
//!
//! The argument is the address of another broker: `-- 127.0.0.1:5673`. The user is `guest`, which a new broker has.

use std::sync::Arc;

use anyhow::{Context, Result};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties, ExchangeKind};
use tickwheel_examples::broker::{Broker, next};
use tickwheel_examples::pushed_orders::{Arrival, PushedOrders};
use tickwheel_push::amqp::{AmqpConnection, AmqpDial, AmqpForm, AmqpLogin, AmqpPlan, AmqpSink};
use tickwheel_push::broker::Link;

/// The user of a new broker, and its password.
const USER: &str = "guest";

#[tokio::main]
async fn main() -> Result<()> {
    let broker = Broker::named("127.0.0.1:5672", "rabbitmq-server &");
    let orders = PushedOrders::open()?;
    let place = orders.place();
    let name = || place.as_str().into();

    let url = format!("amqp://{USER}:{USER}@{}/%2f", broker.address);
    let consumer = broker.reached(Connection::connect(&url, ConnectionProperties::default())).await?;
    let channel = consumer.create_channel().await?;
    // The broker removes the queue with the connection, and the exchange with its last queue.
    let exchange = ExchangeDeclareOptions { auto_delete: true, ..ExchangeDeclareOptions::default() };
    channel.exchange_declare(name(), ExchangeKind::Topic, exchange, FieldTable::default()).await?;
    let queue = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(name(), queue, FieldTable::default()).await?;
    let every = "due.#".into();
    channel.queue_bind(name(), name(), every, QueueBindOptions::default(), FieldTable::default()).await?;
    let options = BasicConsumeOptions::default();
    let mut deliveries =
        channel.basic_consume(name(), "worker-1".into(), options, FieldTable::default()).await?;

    let link = Arc::new(Link::new(AmqpDial::new(AmqpConnection {
        endpoints: vec![broker.endpoint()?],
        vhost: "/".to_owned(),
        login: AmqpLogin::Password { user: USER.to_owned(), password: USER.to_owned() },
        tls: None,
        name: "push_rabbitmq".to_owned(),
    })));
    let plan = AmqpPlan::new(&place, "due.{queue}", AmqpForm::Payload, &[])?;
    orders
        .follow(AmqpSink::new(link, plan), async || {
            let delivery = next(&mut deliveries).await?;
            delivery.acker.ack(BasicAckOptions::default()).await?;
            let id = delivery.properties.message_id().as_ref().context("a message without an id")?;
            Ok(Arrival { id: id.to_string(), payload: delivery.data })
        })
        .await?;

    consumer.close(200, "done".into()).await.context("close the connection")
}
