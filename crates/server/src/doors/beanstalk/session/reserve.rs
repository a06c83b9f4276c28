//! Jobs that a client gets.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::beanstalk::{Command, Event, Reply};
use tickwheel_queue::{Lease, Leased};

use super::{Session, TOGETHER_MAX};
use crate::doors::beanstalk::counters::Counted;
use crate::doors::beanstalk::cut::{Cut, unavailable};
use crate::doors::beanstalk::wire::Wire;
use crate::service::caller::WaitEnd;

/// Reserves that are carried out together, at most.
const RESERVES_MAX: usize = 64;
/// Jobs that are given together have at most 16 MiB, or are one: a client that reads slowly has them all wait for it.
const GIVEN_BYTES_MAX: usize = 16 << 20;
/// Instants are rounded up to the millisecond, so that nothing is early; a client that waits must not lose by it.
const ROUNDED_UP: Duration = Duration::from_millis(2);

impl Session<'_> {
    /// Reserves a job, and one more for each such command right behind this one as far as they are ready.
    pub(super) async fn reserve(&mut self, timeout_s: Option<u32>, wire: &mut Wire<'_>) -> Result<(), Cut> {
        self.is_worker();
        let mut timeouts = vec![timeout_s];
        while timeouts.len() < RESERVES_MAX
            && let Some(Event::Command(command)) =
                wire.next_if(|event| matches!(event, Event::Command(Command::Reserve { .. })))
        {
            self.desk.counters.count(&command);
            if let Command::Reserve { timeout_s } = command {
                timeouts.push(timeout_s);
            }
        }
        let mut rest = timeouts.as_slice();
        while let [timeout_s, behind @ ..] = rest {
            match self.wait_for(rest.len().min(self.given_max()), *timeout_s, wire).await? {
                Ok(leased) => {
                    rest = &rest[leased.len()..];
                    self.hand_over(&leased, wire).await?;
                }
                Err(reply) => {
                    rest = behind;
                    wire.say(&reply).await?;
                }
            }
        }
        Ok(())
    }

    pub(super) async fn reserve_batch(
        &mut self,
        max: u32,
        timeout_s: u32,
        wire: &mut Wire<'_>,
    ) -> Result<(), Cut> {
        self.is_worker();
        let max = usize::try_from(max).unwrap_or(usize::MAX).min(self.given_max());
        match self.wait_for(max, Some(timeout_s), wire).await? {
            Ok(leased) => {
                // They are this connection's before anything is said of them.
                self.take(&leased);
                wire.say(&Reply::ReservedBatch(leased.len())).await?;
                say_reserved(&leased, wire).await
            }
            Err(reply) => Ok(wire.say(&reply).await?),
        }
    }

    /// Jobs, at least one: what is ready, or waited for as long as the client wants, until one of its own jobs has little time left, or until it
    /// says no more.
    async fn wait_for(
        &mut self,
        max: usize,
        timeout_s: Option<u32>,
        wire: &mut Wire<'_>,
    ) -> Result<Result<Vec<Leased>, Reply<'static>>, Cut> {
        let timeout = timeout_s.map_or(Duration::MAX, |s| Duration::from_secs(s.into()));
        if !timeout.is_zero() {
            // What was said before is not kept back while it waits; and nothing is reserved for a client that does not read.
            wire.flush().await?;
        }
        let asked = self.desk.queue.now();
        let warn_in = self.held.warn_in_ms(asked).map(Duration::from_millis);
        let wait = warn_in.map_or(timeout, |warn_in| warn_in.min(timeout));
        let lease = Lease::of(Arc::clone(&self.queues)).max(max);
        let caller = &self.desk.caller;
        let leased = if wait.is_zero() {
            caller.lease(lease, wait, None, pending::<io::Result<()>>()).await?
        } else {
            // One question for what is ready and for what comes: an answer that there is nothing yet would follow the commit that is under way,
            // and only then would the connection stand in line. What is due when the wait ends is still given, such as a job that is delayed
            // for as long as its worker waits, from a moment before. What is ready when the client says that it sends nothing more is given,
            // whether or not the client is there to wait.
            let _waits = self.desk.tubes.wait(&self.queues);
            let _waiting = Counted::new(&self.desk.counters.waiting);
            caller.lease(lease, wait.saturating_add(ROUNDED_UP), None, wire.end()).await?
        };
        let leased = match leased {
            Ok((_, WaitEnd::Stopped)) => return Err(Cut::Stop),
            Ok((_, WaitEnd::Broken(error))) => return Err(error.into()),
            Ok((leased, WaitEnd::Ended)) if leased.is_empty() => return Ok(Err(Reply::TimedOut)),
            Ok((leased, _)) => Ok(leased),
            Err(why) => Err(why),
        };
        Ok(match leased {
            Ok(leased) if !leased.is_empty() => Ok(leased),
            Ok(_) if warn_in.is_some_and(|warn_in| warn_in <= timeout) => Err(Reply::DeadlineSoon),
            Ok(_) => Err(Reply::TimedOut),
            Err(why) => Err(unavailable(&why)?),
        })
    }

    /// How many jobs may be given together.
    fn given_max(&self) -> usize {
        let longest = usize::try_from(self.desk.job_bytes_max).unwrap_or(usize::MAX).max(1);
        (GIVEN_BYTES_MAX / longest).clamp(1, TOGETHER_MAX)
    }

    /// These are in the connection's hands: if it ends they go back.
    fn take(&mut self, leased: &[Leased]) {
        leased.iter().for_each(|one| self.held.insert(one));
    }

    pub(super) async fn hand_over(&mut self, leased: &[Leased], wire: &mut Wire<'_>) -> Result<(), Cut> {
        self.take(leased);
        say_reserved(leased, wire).await
    }

    pub(super) fn is_worker(&mut self) {
        self.worker.get_or_insert_with(|| Counted::new(&self.desk.counters.workers));
    }
}

async fn say_reserved(leased: &[Leased], wire: &mut Wire<'_>) -> Result<(), Cut> {
    for one in leased {
        let (body, _) = one.body.payload_at(one.step);
        wire.say(&Reply::Reserved { id: one.id, body }).await?;
    }
    Ok(())
}
