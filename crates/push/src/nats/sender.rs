//! [`NatsSink`]: the sink that publishes messages to a stream.

use std::sync::Arc;

use async_nats::jetstream::context::PublishError;
use async_nats::jetstream::message::PublishMessage;

use super::answer;
use super::connection::{NatsConnection, NatsLive};
use super::plan::NatsPlan;
use crate::broker::{Confirms, Link};
use crate::message::Message;
use crate::outcome::Outcome;
use crate::sink::{Attempt, Sink};

/// The sink that publishes messages to a stream of NATS JetStream.
///
/// Delivered means: the stream that the plan names has answered that it has the message. A message without a stream has no confirm, so it is
/// no target. The header `Nats-Msg-Id` is the id of the message: within its window, the stream takes a message that is sent again only once.
pub struct NatsSink {
    link: Arc<Link<NatsConnection>>,
    plan: NatsPlan,
    confirms: Confirms<NatsLive>,
}

impl NatsSink {
    /// Returns a sink. Opens no connection yet.
    #[must_use]
    pub fn new(link: Arc<Link<NatsConnection>>, plan: NatsPlan) -> Self {
        Self { link, plan, confirms: Confirms::default() }
    }

    async fn attempt(&self, message: &Message) -> Outcome {
        let (subject, published) = match self.plan.message(message) {
            Ok(published) => published,
            Err(outcome) => return outcome,
        };
        let live = match self.link.live().await {
            Ok(live) => live,
            Err(outcome) => return outcome,
        };
        let sent = self.confirms.send(&live, message.leased.id);
        let answered = tokio::select! {
            // An answer that has come counts, also on a connection that is lost by now.
            biased;
            answered = sent.answer(self.plan.timeout, publish(&live, &subject, published)) => answered,
            () = live.lost() => return Outcome::target_failed("the connection was lost before the answer"),
        };
        match (answered, live.denied()) {
            (Ok(Ok(())), _) => Outcome::Delivered,
            (Ok(Err(error)), _) => answer::judge(&error, &subject, live.has_jetstream()),
            // A server that denies a subject says so to the connection, and gives the message no answer.
            (Err(_), Some(denied)) => {
                // Rights may have been given meanwhile, so the next connection begins without the denial.
                live.leave();
                Outcome::target_failed(format!("no confirm within {:?}: {denied}", self.plan.timeout))
            }
            (Err(outcome), None) => outcome,
        }
    }
}

async fn publish(live: &NatsLive, subject: &str, published: PublishMessage) -> Result<(), PublishError> {
    live.context.send_publish(subject.to_owned(), published).await?.await?;
    Ok(())
}

impl Sink for NatsSink {
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
        Box::pin(async { self.attempt(message).await.into() })
    }
}
