//! [`AmqpSink`]: the sink that publishes messages to an exchange of RabbitMQ.

use std::sync::Arc;

use lapin::types::ShortString;
use lapin::{BasicProperties, Connection};
use tickwheel_queue::Undeliverable;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::channel::{Confirmed, Publication, Publisher};
use super::connection::{AmqpDial, text_of};
use super::delay::negated;
use super::packed::{CONTENT_TYPE_PACKED, Packed};
use super::plan::{AmqpContent, AmqpPlan};
use super::properties::{encoded, published_by, table_of, with_headers};
use crate::broker::{Confirms, Link, Live};
use crate::message::Message;
use crate::outcome::Outcome;
use crate::sink::{Attempt, Sink};

/// A frame has this many bytes beside its content: those of the frame, and those of a content header before its properties.
const FRAME_SPARE_BYTES: usize = 8 + 12;

/// The sink that publishes messages to an exchange of RabbitMQ. Targets share a connection, and each has its own channel.
///
/// | the broker | the outcome |
/// |---|---|
/// | confirms the message, and did not return it | delivered |
/// | returns the message, because no queue takes it | failure of the task |
/// | refuses the message (`basic.nack`) | failure of the task |
/// | confirms a message of the target that was sent later, and not this one in its time | failure of the task |
/// | confirms nothing in time | failure of the target |
/// | takes nothing now, because its memory or disk is full | failure of the target |
/// | closes the channel, because there is no such exchange or no right to it | failure of the target |
/// | closes the channel on which the message was alone | failure of the task |
/// | closes the channel, because the message is too large | undeliverable |
/// | loses the connection before the confirm | failure of the target |
pub struct AmqpSink {
    link: Arc<Link<AmqpDial>>,
    plan: AmqpPlan,
    open: Mutex<Option<Open>>,
    confirms: Confirms<Connection>,
}

/// A channel with its connection.
struct Open {
    connection: Arc<Live<Connection>>,
    publisher: Arc<Publisher>,
}

impl AmqpSink {
    /// Returns a sink. Opens no connection yet.
    #[must_use]
    pub fn new(link: Arc<Link<AmqpDial>>, plan: AmqpPlan) -> Self {
        Self { link, plan, open: Mutex::default(), confirms: Confirms::default() }
    }

    async fn attempt(&self, message: &Message) -> Result<(), Outcome> {
        let deadline = Instant::now() + self.plan.timeout;
        let seconds = self.plan.timeout.as_secs_f64();
        let (connection, publisher) = timeout_at(deadline, self.channel())
            .await
            .unwrap_or_else(|_| Err(Outcome::target_failed(format!("no channel within {seconds} s"))))?;
        if connection.status().blocked() {
            return Err(blocked());
        }
        let publication = self.publication(message, &connection)?;
        let sent = self.confirms.send(&connection, message.leased.id);
        let Ok(confirmed) = timeout_at(deadline, publisher.publish(publication)).await else {
            return Err(match connection.status() {
                status if status.blocked() => blocked(),
                status if !status.connected() => {
                    Outcome::target_failed("the connection was lost before the confirm")
                }
                _ => sent.silence(&format!("no confirm within {seconds} s")),
            });
        };
        match confirmed {
            Confirmed::Taken => {
                sent.confirmed();
                Ok(())
            }
            Confirmed::Returned(reason) => Err(Outcome::task_failed(reason)),
            Confirmed::Refused => Err(Outcome::task_failed("the broker refused the message (basic.nack)")),
            Confirmed::Blamed(reason) => Err(Outcome::task_failed(reason)),
            Confirmed::TooLarge(reason) => Err(Outcome::undeliverable(Undeliverable::TooLarge, reason)),
            Confirmed::Lost(reason) => Err(Outcome::target_failed(reason)),
        }
    }

    /// Returns the open channel, and opens one first if there is none.
    async fn channel(&self) -> Result<(Arc<Live<Connection>>, Arc<Publisher>), Outcome> {
        let connection = self.link.live().await?;
        // Held while a channel is opened. A confirm is waited for without it.
        let mut open = self.open.lock().await;
        if let Some(open) = open.as_ref()
            && Arc::ptr_eq(&open.connection, &connection)
            && open.publisher.is_open()
        {
            return Ok((connection, Arc::clone(&open.publisher)));
        }
        *open = None;
        let publisher = Publisher::open(&connection).await;
        let publisher = publisher.map_err(|error| Outcome::target_failed(text_of(&error)))?;
        let publisher = Arc::new(publisher);
        *open = Some(Open { connection: Arc::clone(&connection), publisher: Arc::clone(&publisher) });
        Ok((connection, publisher))
    }

    fn publication(&self, message: &Message, connection: &Connection) -> Result<Publication, Outcome> {
        let publication = match &self.plan.content {
            AmqpContent::Task(content, routing_key) => {
                let routing_key = match routing_key {
                    Some(address) => short("routing key", address.of(message)?)?,
                    None => ShortString::default(),
                };
                let (body, content_type) = content.body(message);
                let properties = BasicProperties::default()
                    .with_content_type(short("content type", content_type)?)
                    .with_headers(table_of(content.headers(message)?))
                    .with_delivery_mode(if self.plan.persistent { 2 } else { 1 })
                    .with_priority(0)
                    .with_message_id(short("id", message.id())?)
                    .with_timestamp(u64::try_from(message.sent_at.as_ms() / 1_000).unwrap_or(0));
                self.published(routing_key, properties, body)
            }
            AmqpContent::Unpacked => {
                let (payload, content_type) = message.payload();
                let refused = |reason: String| Outcome::undeliverable(Undeliverable::Refused, reason);
                if content_type != CONTENT_TYPE_PACKED {
                    return Err(refused(format!(
                        "the payload is of the type `{content_type}`, not `{CONTENT_TYPE_PACKED}`"
                    )));
                }
                let packed = Packed::unpack(payload).map_err(|error| refused(error.to_string()))?;
                let headers = packed.properties.headers().clone().map(negated);
                let properties = with_headers(&packed.properties, headers);
                let properties = published_by(&connection.status().username(), properties);
                self.published(packed.routing_key, properties, packed.body)
            }
        };
        let header_bytes = encoded(&publication.properties).len() + FRAME_SPARE_BYTES;
        let frame_bytes_max = connection.configuration().frame_max() as usize;
        if header_bytes > frame_bytes_max {
            let reason = format!("the headers have {header_bytes} bytes; the broker takes {frame_bytes_max}");
            return Err(Outcome::undeliverable(Undeliverable::TooLarge, reason));
        }
        Ok(publication)
    }

    fn published(&self, routing_key: ShortString, properties: BasicProperties, body: Vec<u8>) -> Publication {
        Publication {
            exchange: self.plan.exchange.clone(),
            routing_key,
            mandatory: self.plan.mandatory,
            properties,
            body,
        }
    }
}

impl Sink for AmqpSink {
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
        Box::pin(async move {
            match self.attempt(message).await {
                Ok(()) => Outcome::Delivered.into(),
                Err(outcome) => outcome.into(),
            }
        })
    }
}

fn blocked() -> Outcome {
    Outcome::target_failed("the broker takes no messages now, because its memory or its disk is full")
}

fn short(noun: &str, text: String) -> Result<ShortString, Outcome> {
    ShortString::try_new(text).map_err(|error| Outcome::unfillable(format!("template: the {noun}: {error}")))
}
