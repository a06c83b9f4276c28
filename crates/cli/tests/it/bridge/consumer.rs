//! A consumer with its queue behind the exchange of due messages.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{Connection, Error};

use crate::bridge::ledger::Ledger;
use crate::bridge::publisher::{Load, connect};

/// Makes the queue of a consumer, bound to an exchange by these keys.
pub(crate) async fn bind(uri: &str, queue: &str, exchange: &str, keys: &[&str]) {
    let connection = connect(uri).await;
    let channel = connection.create_channel().await.expect("a channel");
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.into(), durable, FieldTable::default()).await.expect("a queue");
    for key in keys {
        let options = QueueBindOptions::default();
        channel
            .queue_bind(queue.into(), exchange.into(), (*key).into(), options, FieldTable::default())
            .await
            .expect("a binding");
    }
}

/// Consumes all messages of a queue, on one connection after the other, until the task is aborted.
pub(crate) async fn consume(uri: String, queue: String, ledger: Arc<Ledger>) {
    loop {
        let connection = connect(&uri).await;
        // The broker was killed: it delivers again what was not acked.
        let _ = consume_on(&connection, &queue, &ledger).await;
    }
}

async fn consume_on(connection: &Connection, queue: &str, ledger: &Ledger) -> Result<(), Error> {
    let channel = connection.create_channel().await?;
    channel.basic_qos(500, BasicQosOptions::default()).await?;
    let options = BasicConsumeOptions::default();
    let mut consumer =
        channel.basic_consume(queue.into(), "test".into(), options, FieldTable::default()).await?;
    while let Some(delivery) = poll_fn(|context| Pin::new(&mut consumer).poll_next(context)).await {
        let delivery = delivery?;
        let id = std::str::from_utf8(&delivery.data).ok().and_then(|text| text.parse().ok());
        match id {
            Some(id) if delivery.routing_key.as_str() == Load::routing_key(id) => {
                ledger.arrive(id, delivery.redelivered);
            }
            _ => ledger.strange(format!("{delivery:?}")),
        }
        delivery.acker.ack(BasicAckOptions::default()).await?;
    }
    Ok(())
}
