//! [`Session`]: the work of a bridge on one connection.
//!
//! A message is acked when its change is durable, and not before. So a session that ends in whatever way loses nothing: the broker delivers
//! again what was not acked.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicCancelOptions, BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use lapin::{Acker, Channel, Connection, Consumer, Error, ErrorKind};
use tickwheel_queue::Key;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::figures::{BridgeFigures, Counter};
use super::plan::BridgePlan;
use super::request::{Delayed, Request, as_published};
use super::store::{Kept, Store};
use crate::amqp::{
    Confirmed, Packed, Publication, Publisher, everlasting, published_by, text, text_of, with_headers,
};

/// The header with the reason for which a message was refused.
const REASON_HEADER: &str = "tickwheel-refused";
/// The time in which the messages on their way are settled when a bridge stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause before a refused message is published again that the broker did not take.
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// The time in which the broker confirms a refused message.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest size of the headers of a refused message (bytes). Larger ones are left out, because a frame must hold them.
const HEADERS_BYTES_MAX: usize = 60_000;
/// The tag of the consumer.
const TAG: &str = "tickwheel";

/// Why a session ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The broker refused to declare an exchange or a queue. The reason.
    Undeclared(String),
    /// The connection or a channel was lost. The reason.
    Lost(String),
}

/// The parts that the messages of a session share.
struct Shared {
    store: Arc<dyn Store>,
    figures: Arc<BridgeFigures>,
    publisher: Publisher,
    refused_queue: String,
    user: String,
}

/// The work of a bridge on one connection.
pub(super) struct Session {
    plan: BridgePlan,
    shared: Arc<Shared>,
    channel: Channel,
    consumer: Consumer,
    /// The messages on their way.
    carried: JoinSet<(Option<Key>, Result<(), String>)>,
    /// The keys of messages on their way, and the messages that wait for them.
    busy: HashMap<Key, VecDeque<Work>>,
}

/// A message to carry.
struct Work {
    acker: Acker,
    message: Packed,
    request: Result<Request, String>,
    received: Instant,
}

impl Session {
    /// Declares the exchanges and queues, and begins to consume.
    pub(super) async fn begin(
        plan: &BridgePlan,
        connection: &Connection,
        store: &Arc<dyn Store>,
        figures: &Arc<BridgeFigures>,
    ) -> Result<Self, Ended> {
        let lost = |error: Error| Ended::Lost(text_of(&error));
        let channel = connection.create_channel().await.map_err(lost)?;
        plan.declare(&channel).await.map_err(|error| match error.kind() {
            ErrorKind::ProtocolError(_) => Ended::Undeclared(text_of(&error)),
            _ => Ended::Lost(text_of(&error)),
        })?;
        channel.basic_qos(plan.prefetch, BasicQosOptions::default()).await.map_err(lost)?;
        let publisher = Publisher::open(connection).await.map_err(lost)?;
        let options = BasicConsumeOptions::default();
        let consumer = channel.basic_consume(plan.queue.clone(), TAG.into(), options, FieldTable::default());
        let consumer = consumer.await.map_err(lost)?;
        figures.count(Counter::Sessions);
        figures.set_trouble(None);
        let shared = Shared {
            store: Arc::clone(store),
            figures: Arc::clone(figures),
            publisher,
            refused_queue: plan.refused_queue(),
            user: connection.status().username(),
        };
        Ok(Self {
            plan: plan.clone(),
            shared: Arc::new(shared),
            channel,
            consumer,
            carried: JoinSet::new(),
            busy: HashMap::new(),
        })
    }

    /// Carries messages until `until` is ready, or the connection is lost.
    pub(super) async fn run(
        mut self,
        mut until: Pin<&mut (dyn Future<Output = ()> + Send)>,
    ) -> Result<(), Ended> {
        loop {
            tokio::select! {
                biased;
                () = &mut until => break,
                Some(done) = self.carried.join_next(), if !self.carried.is_empty() => self.carried_one(done)?,
                next = poll_fn(|context| Pin::new(&mut self.consumer).poll_next(context)) => match next {
                    Some(Ok(delivery)) => self.take(delivery),
                    Some(Err(error)) => return Err(Ended::Lost(text_of(&error))),
                    None => return Err(Ended::Lost("the broker ended the delivery of messages".to_owned())),
                },
            }
        }
        // A stop that takes too long leaves messages unacked, and the broker keeps them.
        let _ = timeout(STOP_TIMEOUT, self.stop()).await;
        Ok(())
    }

    /// Takes no more messages, and settles those on their way.
    async fn stop(&mut self) {
        if self.channel.basic_cancel(TAG.into(), BasicCancelOptions::default()).await.is_err() {
            return;
        }
        while let Some(done) = self.carried.join_next().await {
            if self.carried_one(done).is_err() {
                return;
            }
        }
        let _ = self.channel.close(200, "the bridge stops".into()).await;
    }

    fn take(&mut self, delivery: Delivery) {
        let Delivery { exchange, routing_key, redelivered, properties, data, acker, .. } = delivery;
        let request = Request::read(&properties, self.plan.key);
        let figures = &self.shared.figures;
        figures.count(Counter::Received);
        if redelivered {
            figures.count(Counter::Redelivered);
            if matches!(request, Ok(Request::Delay { key: None, .. })) {
                figures.count(Counter::Repeatable);
            }
        }
        let message = as_published(Packed { exchange, routing_key, properties, body: data });
        let work = Work { acker, message, request, received: Instant::now() };
        match work.key() {
            Some(key) => match self.busy.get_mut(key) {
                Some(behind) => behind.push_back(work),
                None => {
                    self.busy.insert(key.clone(), VecDeque::new());
                    self.carry(work);
                }
            },
            None => self.carry(work),
        }
    }

    fn carry(&mut self, work: Work) {
        let shared = Arc::clone(&self.shared);
        self.carried.spawn(async move {
            let key = work.key().cloned();
            let result = shared.carry(work).await;
            (key, result)
        });
    }

    fn carried_one(
        &mut self,
        done: Result<(Option<Key>, Result<(), String>), tokio::task::JoinError>,
    ) -> Result<(), Ended> {
        let (key, result) = done.map_err(|error| Ended::Lost(error.to_string()))?;
        result.map_err(Ended::Lost)?;
        if let Some(key) = key {
            match self.busy.get_mut(&key).and_then(VecDeque::pop_front) {
                Some(work) => self.carry(work),
                None => {
                    self.busy.remove(&key);
                }
            }
        }
        Ok(())
    }
}

impl Work {
    fn key(&self) -> Option<&Key> {
        match &self.request {
            Ok(Request::Delay { key, .. }) => key.as_ref(),
            Ok(Request::Cancel(key)) => Some(key),
            Err(_) => None,
        }
    }
}

impl Shared {
    /// Carries one message until it is acked. The error is why the session must end.
    async fn carry(&self, work: Work) -> Result<(), String> {
        let Work { acker, message, request, received } = work;
        let counter = match &request {
            Ok(Request::Delay { key, when }) => {
                let mut delayed =
                    Delayed { key: key.clone(), due: when.due(Duration::ZERO), payload: message.pack() };
                loop {
                    delayed.due = when.due(received.elapsed());
                    match self.kept(self.store.put(&delayed).await).await {
                        Some(Ok(())) => break Counter::Stored,
                        Some(Err(reason)) => break self.refuse(message, &reason).await?,
                        None => {}
                    }
                }
            }
            Ok(Request::Cancel(key)) => loop {
                match self.kept(self.store.cancel(key).await).await {
                    Some(Ok(())) => break Counter::Cancelled,
                    Some(Err(reason)) => break self.refuse(message, &reason).await?,
                    None => {}
                }
            },
            Err(reason) => self.refuse(message, reason).await?,
        };
        acker.ack(BasicAckOptions::default()).await.map_err(|error| text_of(&error))?;
        self.figures.count(counter);
        Ok(())
    }

    /// Returns a final answer of the store; `None`: after a pause, the call is to be made again.
    async fn kept(&self, kept: Kept) -> Option<Result<(), String>> {
        match kept {
            Kept::Done => Some(Ok(())),
            Kept::Refused(reason) => Some(Err(reason)),
            Kept::NotNow { reason: _, after } => {
                self.figures.count(Counter::Waits);
                tokio::time::sleep(after).await;
                None
            }
        }
    }

    /// Publishes a message to the queue for refused messages, and returns when the broker has it.
    async fn refuse(&self, message: Packed, reason: &str) -> Result<Counter, String> {
        let properties = everlasting(published_by(&self.user, message.properties));
        let mut headers = properties.headers().clone().unwrap_or_default();
        let sizes = headers.into_iter().map(|(name, value)| name.as_str().len() + size_of_value(value));
        if sizes.sum::<usize>() > HEADERS_BYTES_MAX {
            headers = FieldTable::default();
        }
        headers.insert(REASON_HEADER.into(), text(reason));
        headers.insert("tickwheel-exchange".into(), text(message.exchange.as_str()));
        headers.insert("tickwheel-routing-key".into(), text(message.routing_key.as_str()));
        let publication = Publication {
            exchange: "".into(),
            routing_key: self.refused_queue.as_str().into(),
            mandatory: true,
            properties: with_headers(&properties, Some(headers)),
            body: message.body,
        };
        loop {
            let confirmed = timeout(CONFIRM_TIMEOUT, self.publisher.publish(publication.clone())).await;
            match confirmed {
                Ok(Confirmed::Taken) => return Ok(Counter::Refused),
                // The queue is full.
                Ok(Confirmed::Refused) => {
                    self.figures.count(Counter::Waits);
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
                // Without the queue, the next session declares it.
                Ok(
                    Confirmed::Returned(reason)
                    | Confirmed::Blamed(reason)
                    | Confirmed::TooLarge(reason)
                    | Confirmed::Lost(reason),
                ) => return Err(format!("a refused message was not taken: {reason}")),
                Err(_) => return Err("a refused message was not confirmed".to_owned()),
            }
        }
    }
}

/// Returns about how many bytes a value has in a frame.
fn size_of_value(value: &lapin::types::AMQPValue) -> usize {
    use lapin::types::AMQPValue;
    const HEAD: usize = 9;
    HEAD + match value {
        AMQPValue::LongString(text) => text.len(),
        AMQPValue::ByteArray(bytes) => bytes.len(),
        AMQPValue::FieldArray(values) => values.as_slice().iter().map(size_of_value).sum(),
        AMQPValue::FieldTable(table) => {
            table.into_iter().map(|(name, value)| name.as_str().len() + size_of_value(value)).sum()
        }
        _ => 0,
    }
}
