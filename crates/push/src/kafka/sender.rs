//! [`KafkaSink`]: the sink that sends messages to a topic.

use std::sync::Arc;

use tokio::time::timeout;

use super::answer;
use super::connection::KafkaConnection;
use super::plan::KafkaPlan;
use crate::broker::Link;
use crate::message::Message;
use crate::outcome::Outcome;
use crate::sink::{Attempt, Sink};

/// The sink that sends messages to a topic of Kafka.
///
/// Delivered means: the leader of the partition has answered that all replicas in sync have the record (`acks=all`). The producer is
/// idempotent, so a record that the client sends again is there once. A task that is sent again is another record with the same header
/// `tickwheel-id`.
///
/// A record that a broker does not answer in time is a failure of the target: a broker refuses a bad record, and does not pass it over in silence. The
/// client itself waits out too few replicas and a leader that is gone, and then says that there was no answer.
pub struct KafkaSink {
    link: Arc<Link<KafkaConnection>>,
    plan: KafkaPlan,
}

impl KafkaSink {
    /// Returns a sink. Opens no connection yet.
    #[must_use]
    pub fn new(link: Arc<Link<KafkaConnection>>, plan: KafkaPlan) -> Self {
        Self { link, plan }
    }

    async fn attempt(&self, message: &Message) -> Outcome {
        let record = match self.plan.record(message) {
            Ok(record) => record,
            Err(outcome) => return outcome,
        };
        let live = match self.link.live().await {
            Ok(live) => live,
            Err(outcome) => return outcome,
        };
        match timeout(self.plan.timeout, live.producer.send(record)).await {
            Ok(Ok(_)) => Outcome::Delivered,
            Ok(Err(error)) => {
                if answer::ends_producer(&error) {
                    live.leave();
                }
                answer::judge(&error)
            }
            Err(_) => {
                live.leave();
                Outcome::target_failed(format!("no confirm within {:?}", self.plan.timeout))
            }
        }
    }
}

impl Sink for KafkaSink {
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
        Box::pin(async { self.attempt(message).await.into() })
    }
}
