//! Messages that cannot be kept.
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel};

use crate::bridge::programs::{Program, count};
use crate::bridge::publisher::connect;
use crate::bridge::start::{ANY, server_at};
use crate::rabbit::{Broker, get};

/// 200 years (ms).
const TOO_FAR_MS: i64 = 200 * 365 * 86_400_000;

async fn publish(channel: &Channel, exchange: &str, header: (&str, AMQPValue), body: &[u8]) {
    let mut headers = FieldTable::default();
    headers.insert(header.0.into(), header.1);
    let properties = BasicProperties::default().with_headers(headers);
    let options = BasicPublishOptions::default();
    let confirm = channel.basic_publish(exchange.into(), "eu".into(), options, body, properties).await;
    confirm.expect("published").await.expect("confirmed");
}

/// Publishes two messages that cannot be kept, and finds them in the queue for refused messages with the reasons.
async fn refuse(broker: &Broker, exchange: &str, options: &[&str]) {
    let bridge = tokio::task::block_in_place(|| Program::bridge(broker, options));
    let connection = connect(&broker.uri()).await;
    let channel = connection.create_channel().await.expect("a channel");
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    let refused = format!("tickwheel.{exchange}.refused");
    for (header, body, word) in [
        (("tickwheel-key", AMQPValue::Boolean(true)), b"key".as_slice(), "key"),
        (("x-delay", AMQPValue::LongLongInt(TOO_FAR_MS)), b"far".as_slice(), "due"),
    ] {
        publish(&channel, exchange, header, body).await;
        let message = get(&channel, &refused).await;
        assert_eq!(message.data, body);
        let headers = message.properties.headers().clone().expect("headers");
        let Some(AMQPValue::LongString(reason)) = headers.inner().get("tickwheel-refused") else {
            panic!("{headers:?}")
        };
        let reason = String::from_utf8_lossy(reason.as_bytes()).into_owned();
        assert!(reason.contains(word), "{reason}");
        let expected = AMQPValue::LongString("eu".into());
        assert_eq!(headers.inner().get("tickwheel-routing-key"), Some(&expected));
    }
    let last = tokio::task::block_in_place(|| bridge.stop());
    assert_eq!(
        (count(&last, "received"), count(&last, "refused"), count(&last, "kept")),
        (2, 2, 0),
        "{last}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_cannot_be_kept_is_in_the_refused_queue() {
    let Some(broker) = Broker::shared() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("bridge");
    let options = ["--exchange", "refused.data", "--data", data.to_str().expect("UTF-8")];
    refuse(&broker, "refused.data", &options).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_a_server_refuses_is_in_the_refused_queue() {
    let Some(broker) = Broker::shared() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let server = server_at(&broker, folder.path(), ANY);
    let options = ["--exchange", "refused.server", "--server", &server.ready, "--connection", "main"];
    refuse(&broker, "refused.server", &options).await;
}
