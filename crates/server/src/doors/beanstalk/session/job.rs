//! Commands about one job, named by its id or its key.

use tickwheel_api::beanstalk::{Command, Fault, Reply, When};
use tickwheel_queue::{
    Ack, Act, Acted, ByIdError, Cancel, Extend, Key, Nack, Patch, Pending, TokenAnswer, Unavailable,
};

use super::{DELAY_MS_MAX, Session, TOGETHER_MAX, due_of};
use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::doors::beanstalk::command_error::{CommandError, End};
use crate::doors::beanstalk::reserved::Job;
use crate::doors::beanstalk::wire::Wire;

/// A delete that was asked for.
enum Deleting {
    /// Deletes a job that this connection has reserved.
    Reserved(Job, Pending<Vec<TokenAnswer>, Unavailable>),
    Other(Pending<Acted, ByIdError>),
}

impl Session<'_> {
    /// Deletes this job, and the jobs of the delete commands that directly follow this one.
    pub(super) async fn deletes(&mut self, first: u64, wire: &mut Wire<'_>) -> Result<(), End> {
        let mut ids = vec![first];
        while ids.len() < TOGETHER_MAX
            && let Some(Ok(command)) = wire.next_if(|event| matches!(event, Ok(Command::Delete(_))))
        {
            self.door.counters.count(command.verb());
            if let Command::Delete(id) = command {
                ids.push(id);
            }
        }
        let mut deletes = Vec::with_capacity(ids.len());
        for id in ids {
            // A second delete of the same id finds no job after the first is answered.
            deletes.push(match self.reserved.remove(id) {
                Some(job) => {
                    let acked = self.door.caller.ack(Ack::new(&job.queue, [job.token]))?;
                    (id, Deleting::Reserved(job, acked))
                }
                None => (id, Deleting::Other(self.cancel(id)?)),
            });
            self.steps.did(0).await;
        }
        for (id, delete) in deletes {
            let reply = self.deleted(id, delete).await.or_else(CommandError::answer)?;
            wire.say(&reply).await?;
        }
        Ok(())
    }

    fn cancel(&self, id: u64) -> Result<Pending<Acted, ByIdError>, Refusal> {
        self.door.caller.by_id(Right::Produce, id, Act::Cancel, None)
    }

    async fn deleted(&mut self, id: u64, delete: Deleting) -> Result<Reply<'static>, CommandError> {
        let cancelled = match delete {
            Deleting::Other(cancelled) => cancelled,
            Deleting::Reserved(job, acked) => match acked.await {
                Ok(answers) if answers == [TokenAnswer::Acked] => return Ok(Reply::Deleted),
                // The lease has ended: the job waits, or another connection has it.
                Ok(answers) if answers == [TokenAnswer::Expired] => self.cancel(id)?,
                // The owner took the task back, and may have put another task under its key.
                Ok(_) => return Ok(Reply::NotFound),
                Err(why) => {
                    self.reserved.put_back(id, job);
                    return Err(why.into());
                }
            },
        };
        cancelled.await?;
        Ok(Reply::Deleted)
    }

    pub(super) async fn release(
        &mut self,
        id: u64,
        priority: u32,
        delay_s: u32,
    ) -> Result<Reply<'static>, CommandError> {
        let delay_ms = Some((u64::from(delay_s) * 1_000).min(DELAY_MS_MAX));
        let gives_back = |nack| Nack { delay_ms, priority: Some(priority), ..nack };
        self.give_back(id, gives_back, Reply::Released).await
    }

    pub(super) async fn bury(&mut self, id: u64, priority: u32) -> Result<Reply<'static>, CommandError> {
        let buries = |nack: Nack| Nack { priority: Some(priority), ..nack.buried() };
        self.give_back(id, buries, Reply::Buried).await
    }

    async fn give_back(
        &mut self,
        id: u64,
        how: impl FnOnce(Nack) -> Nack,
        done: Reply<'static>,
    ) -> Result<Reply<'static>, CommandError> {
        let Some(job) = self.reserved.get(id) else { return Ok(Reply::NotFound) };
        let nack = how(Nack::new(&job.queue, [job.token]));
        let answers = self.door.caller.nack(nack)?.await?;
        self.reserved.remove(id);
        Ok(if answers == [TokenAnswer::Nacked] { done } else { Reply::NotFound })
    }

    pub(super) async fn touch(&mut self, id: u64) -> Result<Reply<'static>, CommandError> {
        let Some(job) = self.reserved.get(id) else { return Ok(Reply::NotFound) };
        let extend = Extend { queue: job.queue.clone(), tokens: vec![job.token], lease_ms: None };
        // The time begins anew at a moment between now and the answer. A warning that is too early does no harm.
        let now = self.door.caller.now();
        if self.door.caller.extend(extend)?.await? == [TokenAnswer::Extended] {
            self.reserved.extended(id, now);
            return Ok(Reply::Touched);
        }
        self.reserved.remove(id);
        Ok(Reply::NotFound)
    }

    pub(super) async fn delete_key(&self, key: &str) -> Result<Reply<'static>, CommandError> {
        let Ok(key) = Key::new(key) else { return Ok(Reply::NotFound) };
        self.door.caller.cancel(Cancel::new(&self.used.queue, key))?.await?;
        Ok(Reply::Deleted)
    }

    pub(super) async fn delay_key(&self, key: &str, when: When) -> Result<Reply<'static>, CommandError> {
        let Some(due) = due_of(when) else { return Ok(Reply::Fault(Fault::BadFormat)) };
        let Ok(key) = Key::new(key) else { return Ok(Reply::NotFound) };
        let patch = Patch { due: Some(due), ..Patch::new(&self.used.queue, key) };
        self.door.caller.patch(patch)?.await?;
        Ok(Reply::Delayed)
    }
}
