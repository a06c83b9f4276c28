//! A publisher as programs have it that used the plugin.

use std::sync::Arc;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Error};
use tokio::time::{sleep, timeout};

use crate::bridge::ledger::Ledger;

/// The number of messages that wait for their confirms at one time.
const WINDOW: u64 = 100;
/// The time after which a publisher opens another connection.
const PATIENCE: Duration = Duration::from_secs(20);

/// The messages of a run.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) exchange: String,
    pub(crate) messages: u64,
    pub(crate) delay_ms_max: u64,
    /// The time between two windows.
    pub(crate) pause: Duration,
}

impl Load {
    /// Returns the delay of a message.
    pub(crate) fn delay(&self, id: u64) -> Duration {
        Duration::from_millis(id.wrapping_mul(7_919) % (self.delay_ms_max + 1))
    }

    /// Returns the routing key of a message.
    pub(crate) fn routing_key(id: u64) -> &'static str {
        if id.is_multiple_of(3) { "eu" } else { "us" }
    }
}

/// Opens a connection to a broker that may be down for a while.
pub(crate) async fn connect(uri: &str) -> Connection {
    loop {
        let connecting = Connection::connect(uri, ConnectionProperties::default());
        if let Ok(Ok(connection)) = timeout(PATIENCE, connecting).await {
            return connection;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Publishes all messages of a load, and those again that were not confirmed.
pub(crate) async fn publish(uri: String, load: Load, ledger: Arc<Ledger>) {
    let mut begin = 0;
    while begin < load.messages {
        let connection = connect(&uri).await;
        let working = async {
            let channel = connection.create_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            while begin < load.messages {
                let end = (begin + WINDOW).min(load.messages);
                window(&channel, &load, begin..end, &ledger).await?;
                begin = end;
                sleep(load.pause).await;
            }
            Ok::<(), Error>(())
        };
        // The broker was killed: the window is published again on another connection.
        let _ = working.await;
    }
}

async fn window(
    channel: &Channel,
    load: &Load,
    ids: std::ops::Range<u64>,
    ledger: &Ledger,
) -> Result<(), Error> {
    let mut confirms = Vec::new();
    for id in ids {
        let delay = load.delay(id);
        let mut headers = FieldTable::default();
        let ms = i32::try_from(delay.as_millis()).expect("a short delay");
        headers.insert("x-delay".into(), AMQPValue::LongInt(ms));
        if id.is_multiple_of(2) {
            headers.insert("tickwheel-key".into(), AMQPValue::LongString(format!("m:{id}").into()));
        }
        let properties = BasicProperties::default().with_delivery_mode(2).with_headers(headers);
        ledger.publish(id, delay);
        let body = id.to_string();
        let (exchange, key) = (load.exchange.as_str(), Load::routing_key(id));
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let confirm =
            channel.basic_publish(exchange.into(), key.into(), options, body.as_bytes(), properties);
        confirms.push((id, confirm.await?));
    }
    for (id, confirm) in confirms {
        match timeout(PATIENCE, confirm).await {
            Ok(Ok(Confirmation::Ack(None))) => ledger.confirm(id),
            Ok(Ok(other)) => panic!("message {id}: {other:?}"),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
        }
    }
    Ok(())
}
