//! [`BridgePlan`]: the names of a bridge in the broker, and their declaration.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Error, ExchangeKind};

use crate::amqp::{AmqpForm, AmqpPlan, AmqpPlanError, text};

/// The longest name of an exchange or a queue, so that the names made from it are short enough (bytes).
const NAME_BYTES_MAX: usize = 240;

/// The settings of a bridge.
#[derive(Clone, Debug)]
pub struct BridgePlan {
    pub(super) exchange: ShortString,
    pub(super) kind: ExchangeType,
    pub(super) queue: ShortString,
    /// The source of the key of a task.
    pub key: KeySource,
    /// At most this many messages are on their way through the bridge.
    pub prefetch: u16,
}

/// The type of the exchange to which due messages go: the `x-delayed-type` of the exchange that the bridge replaces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ExchangeType {
    /// Routes by the whole routing key.
    #[default]
    Direct,
    /// Routes by the words of the routing key.
    Topic,
    /// Routes to all queues.
    Fanout,
    /// Routes by headers.
    Headers,
    /// A type of a plugin of the broker.
    Other(String),
}

/// The source of the key of a task. A message with a key replaces the task of this key, and one without a key makes a task of its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum KeySource {
    /// The header `tickwheel-key`.
    #[default]
    Header,
    /// The header `tickwheel-key`, or else the property `message_id`.
    MessageId,
}

/// Why a bridge cannot have these settings.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BridgePlanError {
    /// The name is empty or too long, has control characters, or is one of the broker's own.
    #[error(
        "the name of the {0} may have 1 to {NAME_BYTES_MAX} bytes without control characters, and does not begin with `amq.`"
    )]
    Name(&'static str),
}

impl BridgePlan {
    /// Returns the settings of a bridge for the messages of an exchange, by way of a queue.
    ///
    /// # Errors
    /// [`BridgePlanError`].
    pub fn new(exchange: &str, kind: ExchangeType, queue: &str) -> Result<Self, BridgePlanError> {
        let name = |noun, text: &str| {
            let is_good = (1..=NAME_BYTES_MAX).contains(&text.len())
                && !text.chars().any(char::is_control)
                && !text.starts_with("amq.");
            is_good.then(|| ShortString::from(text)).ok_or(BridgePlanError::Name(noun))
        };
        let (exchange, queue) = (name("exchange", exchange)?, name("queue", queue)?);
        Ok(Self { exchange, kind, queue, key: KeySource::default(), prefetch: 1_000 })
    }

    /// Returns the name of the exchange to which due messages go.
    #[must_use]
    pub fn due_exchange(&self) -> String {
        format!("{}.due", self.exchange)
    }

    /// Returns the name of the queue for messages that cannot be kept.
    #[must_use]
    pub fn refused_queue(&self) -> String {
        format!("{}.refused", self.queue)
    }

    /// Returns the target of the queue of Tickwheel: it publishes due messages as they were.
    ///
    /// # Errors
    /// None for a plan made by [`new`](Self::new); the names were checked there.
    pub fn target(&self) -> Result<AmqpPlan, AmqpPlanError> {
        AmqpPlan::new(&self.due_exchange(), "", AmqpForm::Unpacked, &[])
    }

    /// Declares the exchanges and queues. What is there already stays as it is.
    pub(super) async fn declare(&self, channel: &Channel) -> Result<(), Error> {
        let due: ShortString = self.due_exchange().into();
        let refused: ShortString = self.refused_queue().into();
        let none = FieldTable::default;
        let exchange = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let queue = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.exchange_declare(due, self.kind.kind(), exchange, none()).await?;
        channel.queue_declare(refused.clone(), queue, quorum()).await?;
        // A message that expires in the queue, or that the broker gives up after many deliveries, is not lost.
        let mut arguments = quorum();
        arguments.insert("x-dead-letter-exchange".into(), text(""));
        arguments.insert("x-dead-letter-routing-key".into(), text(refused.as_str()));
        arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
        arguments.insert("x-overflow".into(), text("reject-publish"));
        channel.queue_declare(self.queue.clone(), queue, arguments).await?;
        channel.exchange_declare(self.exchange.clone(), ExchangeKind::Fanout, exchange, none()).await?;
        let (queue, exchange) = (self.queue.clone(), self.exchange.clone());
        channel.queue_bind(queue, exchange, "".into(), QueueBindOptions::default(), none()).await
    }
}

impl ExchangeType {
    fn kind(&self) -> ExchangeKind {
        match self {
            Self::Direct => ExchangeKind::Direct,
            Self::Topic => ExchangeKind::Topic,
            Self::Fanout => ExchangeKind::Fanout,
            Self::Headers => ExchangeKind::Headers,
            Self::Other(name) => ExchangeKind::Custom(name.clone()),
        }
    }
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_the_broker_would_refuse_are_refused() {
        let plan = BridgePlan::new("orders", ExchangeType::Topic, "tickwheel.orders").expect("a plan");
        assert_eq!(
            (plan.due_exchange(), plan.refused_queue()),
            ("orders.due".into(), "tickwheel.orders.refused".into())
        );
        plan.target().expect("a target");
        let long = "a".repeat(241);
        for name in ["", "amq.direct", "a\nb", &long] {
            assert_eq!(
                BridgePlan::new(name, ExchangeType::Direct, "a").err(),
                Some(BridgePlanError::Name("exchange"))
            );
            assert_eq!(
                BridgePlan::new("a", ExchangeType::Direct, name).err(),
                Some(BridgePlanError::Name("queue"))
            );
        }
    }
}
