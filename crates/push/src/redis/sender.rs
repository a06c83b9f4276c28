//! [`RedisSink`]: the sink that adds messages to a stream or a list.

use std::sync::Arc;

use ::redis::{RedisError, Value};

use super::answer;
use super::connection::{RedisConnection, RedisLive};
use super::plan::RedisPlan;
use crate::broker::{Confirms, Link};
use crate::message::Message;
use crate::outcome::Outcome;
use crate::sink::{Attempt, Sink};

/// The sink that adds messages to a stream or a list of Redis.
///
/// Delivered means: the server has answered the id of the entry, or the length of the list. How durable the entry is depends on the
/// server's `appendfsync`.
///
/// With `wait`, that many replicas must have the entry, too. If fewer have it in a quarter of the time-out, the attempt is a failure of the
/// target: missing replicas are no fault of a task. The entry stays where it is, and the task is sent again later, so a second copy with the
/// same id follows. The breaker opens with the first such attempt, so that there are few copies.
pub struct RedisSink {
    link: Arc<Link<RedisConnection>>,
    plan: RedisPlan,
    confirms: Confirms<RedisLive>,
}

impl RedisSink {
    /// Returns a sink. Opens no connection yet.
    #[must_use]
    pub fn new(link: Arc<Link<RedisConnection>>, plan: RedisPlan) -> Self {
        Self { link, plan, confirms: Confirms::default() }
    }

    async fn attempt(&self, message: &Message) -> Outcome {
        let command = match self.plan.command(message) {
            Ok(command) => command,
            Err(outcome) => return outcome,
        };
        let live = match self.link.live().await {
            Ok(live) => live,
            Err(outcome) => return outcome,
        };
        match self
            .confirms
            .send(&live, message.leased.id)
            .answer(self.plan.timeout, self.add(&live, command))
            .await
        {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                if answer::is_replica(&error) {
                    live.leave();
                }
                answer::judge(&error)
            }
            Err(outcome) => outcome,
        }
    }

    async fn add(&self, live: &RedisLive, command: ::redis::Cmd) -> Result<Outcome, RedisError> {
        let mut commands = live.commands.clone();
        command.query_async::<Value>(&mut commands).await?;
        let wanted = self.plan.wait;
        if wanted == 0 {
            return Ok(Outcome::Delivered);
        }
        let time = self.plan.timeout / 4;
        let replicas = live.replicas.wait(&mut commands, wanted, time).await?;
        if replicas < wanted {
            let reason = format!(
                "{replicas} of {wanted} replicas confirmed within {time:?}; connect replicas to the server, or lower `wait` of the target"
            );
            // No other entry would be confirmed either, and each that is tried stays as a copy. So the breaker opens at once.
            return Ok(Outcome::TargetFailed { reason: reason.into(), open_ms: Some(0), asked: false });
        }
        Ok(Outcome::Delivered)
    }
}

impl Sink for RedisSink {
    fn send<'a>(&'a self, message: &'a Message) -> Attempt<'a> {
        Box::pin(async { self.attempt(message).await.into() })
    }
}
