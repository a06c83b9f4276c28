//! [`BeanstalkSink`]: the sink that puts messages into a tube.

use std::sync::Arc;

use super::connection::{BeanstalkConnection, BeanstalkLive};
use super::plan::BeanstalkPlan;
use crate::broker::{Confirms, Link};
use crate::message::Message;
use crate::outcome::Outcome;
use crate::sink::{Attempt, Sink};

/// The reason of a put without an answer.
const LOST: &str = "the connection was lost before the answer";

/// The sink that puts messages into a tube of beanstalkd.
///
/// Delivered means: the server has answered `INSERTED`. How durable the job is depends on the server's `-b` and `-f`. A job has no headers, so
/// the id of the message is in the body only, and only in an envelope.
pub struct BeanstalkSink {
    link: Arc<Link<BeanstalkConnection>>,
    plan: BeanstalkPlan,
    confirms: Confirms<BeanstalkLive>,
}

impl BeanstalkSink {
    /// Returns a sink. Opens no connection yet.
    #[must_use]
    pub fn new(link: Arc<Link<BeanstalkConnection>>, plan: BeanstalkPlan) -> Self {
        Self { link, plan, confirms: Confirms::default() }
    }

    async fn attempt(&self, message: &Message) -> Outcome {
        let job = match self.plan.job(message) {
            Ok(job) => job,
            Err(outcome) => return outcome,
        };
        let live = match self.link.live().await {
            Ok(live) => live,
            Err(outcome) => return outcome,
        };
        let answer = async { live.pipeline.put(job).await.ok_or(LOST) };
        match self.confirms.send(&live, message.leased.id).answer(self.plan.timeout, answer).await {
            Ok(Ok(outcome)) | Err(outcome) => outcome,
            Ok(Err(lost)) => Outcome::target_failed(lost),
        }
    }
}

impl Sink for BeanstalkSink {
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
        Box::pin(async { self.attempt(message).await.into() })
    }
}
