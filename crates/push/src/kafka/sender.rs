//! [`KafkaSink`]: the sink that sends messages to a topic.

use std::sync::Arc;

use krafka::KrafkaError;
use tokio::time::timeout;

use super::answer::{self, Meaning};
use super::connection::{KafkaConnection, KafkaLive};
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
            Ok(Err(error)) => self.failed(&live, &error).await,
            Err(_) => {
                live.leave();
                self.no_answer(format!("no confirm within {:?}", self.plan.timeout)).await
            }
        }
    }

    async fn failed(&self, live: &KafkaLive, error: &KrafkaError) -> Outcome {
        if answer::ends_producer(error) {
            live.leave();
        }
        match answer::judge(error) {
            Meaning::Known(outcome) => outcome,
            Meaning::NoAnswer(reason) => self.no_answer(reason).await,
        }
    }

    /// Finds out whose fault it is that no answer has come.
    async fn no_answer(&self, reason: String) -> Outcome {
        if self.link.dial().is_reachable().await {
            Outcome::task_failed(reason)
        } else {
            Outcome::target_failed(format!("{reason}, and no broker can be reached"))
        }
    }
}

impl Sink for KafkaSink {
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
        Box::pin(async { self.attempt(message).await.into() })
    }
}
