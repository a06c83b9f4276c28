//! The target of each kind, as the server makes it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tickwheel_push::Sink;
use tickwheel_push::amqp::{AmqpConnection, AmqpDial, AmqpForm, AmqpLogin, AmqpPlan, AmqpSink};
use tickwheel_push::beanstalk::{BeanstalkConnection, BeanstalkPlan, BeanstalkSink};
use tickwheel_push::broker::{ContentForm, Endpoint, Link};
use tickwheel_push::dispatch::Plan;
use tickwheel_push::guard::Guard;
use tickwheel_push::kafka::{KafkaConnection, KafkaPlan, KafkaSink};
use tickwheel_push::nats::{NatsConnection, NatsPlan, NatsSink};
use tickwheel_push::redis::{RedisConnection, RedisPlan, RedisSink, Structure};
use tickwheel_push::webhook::{
    AnswerRules, BodyForm, RequestPlan, SigningKey, SystemResolver, TlsPlan, Url, Webhook, WebhookPlan,
};

use super::kind::Kind;

/// The time for one message.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The key of the signatures.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// The place in each broker: a topic, a stream, a queue or a tube.
pub(super) const PLACE: &str = "due";

/// Returns how many messages are under way, and for how long.
pub(super) fn plan(in_flight: usize) -> Plan {
    let timeout_ms = u64::try_from(TIMEOUT.as_millis()).unwrap_or(u64::MAX);
    Plan { concurrency: in_flight, timeout_ms, ..Plan::default() }
}

/// Returns the requests to a receiver.
pub(super) fn requests(address: SocketAddr) -> anyhow::Result<RequestPlan> {
    let url = Url::parse(&format!("http://{address}/hooks/{{queue}}"))?;
    Ok(RequestPlan::new("POST", url, BodyForm::Payload, &[], None)?)
}

/// Returns the key of the signatures.
pub(super) fn signing_key() -> anyhow::Result<SigningKey> {
    SigningKey::parse(SECRET).context("read the key")
}

/// Returns the target of this kind at this address.
pub(super) fn sink(kind: Kind, address: SocketAddr) -> anyhow::Result<Arc<dyn Sink>> {
    let endpoint: Endpoint = address.to_string().parse()?;
    let form = ContentForm::Payload;
    Ok(match kind {
        Kind::Webhook => Arc::new(Webhook::new(WebhookPlan {
            request: requests(address)?,
            signers: vec![signing_key()?.into()],
            rules: AnswerRules::default(),
            timeout: TIMEOUT,
            connections_kept: kind.in_flight(),
            guard: Arc::new(Guard::new(vec!["127.0.0.1".parse()?])),
            resolver: Arc::new(SystemResolver),
            tls: TlsPlan::default().config()?,
        })),
        Kind::Kafka => {
            let link = Arc::new(Link::new(KafkaConnection::new(vec![endpoint])));
            Arc::new(KafkaSink::new(link, KafkaPlan::new(PLACE, Some("{key}"), form, &[], TIMEOUT)?))
        }
        Kind::Nats => {
            let link = Arc::new(Link::new(NatsConnection::new(vec![endpoint])));
            Arc::new(NatsSink::new(link, NatsPlan::new(PLACE, PLACE, form, &[], TIMEOUT)?))
        }
        Kind::Redis => {
            let link = Arc::new(Link::new(RedisConnection::new(vec![endpoint])));
            let stream = Structure::Stream { key: PLACE.to_owned(), maxlen: None };
            Arc::new(RedisSink::new(link, RedisPlan::new(stream, Some(form), &[], 0, TIMEOUT)?))
        }
        Kind::Amqp => {
            let (user, password) = ("guest".to_owned(), "guest".to_owned());
            let link = Arc::new(Link::new(AmqpDial::new(AmqpConnection {
                endpoints: vec![endpoint],
                vhost: "/".to_owned(),
                login: AmqpLogin::Password { user, password },
                tls: None,
                name: "tickwheel-bench".to_owned(),
            })));
            Arc::new(AmqpSink::new(link, AmqpPlan::new("", PLACE, AmqpForm::Payload, &[])?))
        }
        Kind::Beanstalk => {
            let link = Arc::new(Link::new(BeanstalkConnection { endpoint, tls: None }));
            // The payload alone, so that the bytes are those of the raw socket.
            let plan = BeanstalkPlan::new(PLACE, 1_024, 60, Some(form), TIMEOUT)?;
            Arc::new(BeanstalkSink::new(link, plan))
        }
    })
}
