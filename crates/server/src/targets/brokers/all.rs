//! [`Brokers`]: the connections of the configuration by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_api::TargetKind;

use super::broker::{Broker, Opened};

/// Whether this program has targets of a kind. Each kind of broker is a feature with which the program was built or not.
#[must_use]
pub const fn has_kind(kind: TargetKind) -> bool {
    match kind {
        TargetKind::Webhook => true,
        TargetKind::Amqp => cfg!(feature = "amqp"),
        TargetKind::Beanstalk => cfg!(feature = "beanstalk"),
        TargetKind::Kafka => cfg!(feature = "kafka"),
        TargetKind::Nats => cfg!(feature = "nats"),
        TargetKind::Redis => cfg!(feature = "redis"),
    }
}

/// The connections of the configuration.
#[derive(Default)]
pub(in crate::targets) struct Brokers {
    named: BTreeMap<String, Named>,
}

/// A named connection.
pub(in crate::targets) struct Named {
    pub(in crate::targets) kind: TargetKind,
    /// `None`: the program was built without this kind.
    pub(in crate::targets) broker: Option<Arc<dyn Broker>>,
}

impl Brokers {
    /// Adds a connection. Nothing is opened yet.
    ///
    /// # Errors
    /// The reason that the connection cannot be used, for an operator.
    pub(in crate::targets) fn add(&mut self, opened: &Opened<'_>) -> Result<(), String> {
        let kind = opened.plan.kind;
        let broker: Option<Arc<dyn Broker>> = match kind {
            #[cfg(feature = "amqp")]
            TargetKind::Amqp => Some(Arc::new(super::amqp::AmqpBroker::open(opened)?)),
            #[cfg(feature = "beanstalk")]
            TargetKind::Beanstalk => Some(Arc::new(super::beanstalk::BeanstalkBroker::open(opened)?)),
            #[cfg(feature = "kafka")]
            TargetKind::Kafka => Some(Arc::new(super::kafka::KafkaBroker::open(opened)?)),
            #[cfg(feature = "nats")]
            TargetKind::Nats => Some(Arc::new(super::nats::NatsBroker::open(opened)?)),
            #[cfg(feature = "redis")]
            TargetKind::Redis => Some(Arc::new(super::redis::RedisBroker::open(opened)?)),
            #[allow(unreachable_patterns, reason = "a program with all features has no other kind of broker")]
            _ => None,
        };
        self.named.insert(opened.name.to_owned(), Named { kind, broker });
        Ok(())
    }

    /// Returns the connection of this name.
    pub(in crate::targets) fn get(&self, name: &str) -> Option<&Named> {
        self.named.get(name)
    }

    /// Whether the configuration has no connection.
    pub(in crate::targets) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Returns all connections, in the order of their names.
    pub(in crate::targets) fn iter(&self) -> impl Iterator<Item = (&String, &Named)> {
        self.named.iter()
    }
}
