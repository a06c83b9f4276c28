//! Reserves of jobs.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tickwheel_api::beanstalk::{Command, Reply};
use tickwheel_queue::{Act, Acted, Lease, Leased};

use super::{Session, TOGETHER_MAX};
use crate::access::tokens::Right;
use crate::doors::beanstalk::command_error::{CommandError, End};
use crate::doors::beanstalk::counters::Counted;
use crate::doors::beanstalk::wire::Wire;
use crate::service::answers::Held;
use crate::service::caller::{Leasing, WaitEnd};

/// The largest number of reserves that are carried out together.
const RESERVES_MAX: usize = 64;
/// The largest total size of jobs that are given together (bytes); a single job may be larger. All of them stay in
/// memory while a client reads slowly.
const GIVEN_BYTES_MAX: usize = 16 << 20;
/// Instants are rounded up to the millisecond, so that no task is early. A waiting client must not lose this time.
const ROUNDED_UP: Duration = Duration::from_millis(2);

impl Session<'_> {
    /// Reserves a job, and one more for each reserve command that directly follows this one, if jobs are ready.
    pub(super) async fn reserve(&mut self, timeout_s: Option<u32>, wire: &mut Wire<'_>) -> Result<(), End> {
        self.is_worker();
        let mut timeouts = vec![timeout_s];
        while timeouts.len() < RESERVES_MAX
            && let Some(Ok(command)) =
                wire.next_if(|event| matches!(event, Ok(Command::Reserve | Command::ReserveWithTimeout(_))))
        {
            self.door.counters.count(command.verb());
            timeouts.push(if let Command::ReserveWithTimeout(timeout_s) = command {
                timeout_s
            } else {
                None
            });
        }
        let mut rest = timeouts.as_slice();
        while let [timeout_s, behind @ ..] = rest {
            match self.wait_for(rest.len().min(self.given_max()), *timeout_s, wire).await {
                Ok((leased, _held)) => {
                    rest = &rest[leased.len()..];
                    self.hand_over(&leased, wire).await?;
                }
                Err(error) => {
                    rest = behind;
                    wire.say(&error.answer()?).await?;
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
    ) -> Result<(), CommandError> {
        self.is_worker();
        let max = usize::try_from(max).unwrap_or(usize::MAX).min(self.given_max());
        let (leased, _held) = self.wait_for(max, Some(timeout_s), wire).await?;
        // The jobs are noted as reserved by this connection before the answer is written.
        self.take(&leased);
        wire.say(&Reply::ReservedBatch(leased.len())).await?;
        Ok(say_reserved(&leased, wire).await?)
    }

    pub(super) async fn reserve_job(&mut self, id: u64, wire: &mut Wire<'_>) -> Result<(), CommandError> {
        let (act, worker) = (Act::Lease { lease_ms: None }, Some(Arc::clone(&self.name)));
        match self.door.caller.by_id(Right::Consume, id, act, worker)?.await? {
            Acted::Leased(leased) => {
                self.is_worker();
                let payload_bytes = leased.body.payload_at(leased.step).0.len();
                let _held = self.door.caller.hold(payload_bytes).inspect_err(|_| {
                    self.door.caller.give_back(vec![leased.token]);
                })?;
                Ok(self.hand_over(&[*leased], wire).await?)
            }
            _ => Err(Reply::InternalError.into()),
        }
    }

    /// Returns at least one job, with the memory for the answer, or the answer that says why there is none. The wait ends in three
    /// cases: the client's timeout is over, one of its reserved jobs has little time left, or the client has ended its side of the
    /// connection.
    async fn wait_for(
        &mut self,
        max: usize,
        timeout_s: Option<u32>,
        wire: &mut Wire<'_>,
    ) -> Result<(Vec<Leased>, Held), CommandError> {
        let timeout = timeout_s.map_or(Duration::MAX, |s| Duration::from_secs(s.into()));
        if !timeout.is_zero() {
            // Earlier answers are sent before the wait, and nothing is reserved for a client that does not read.
            wire.flush().await?;
        }
        let asked = self.door.caller.now();
        let warn_in = self.reserved.warn_in_ms(asked).map(Duration::from_millis);
        let wait = warn_in.map_or(timeout, |warn_in| warn_in.min(timeout));
        let worker = Some(Arc::clone(&self.name));
        let lease = Lease { worker, ..Lease::of(Arc::clone(&self.queues)).max(max) };
        let caller = &self.door.caller;
        let leased = if wait.is_zero() {
            caller.lease(lease, wait, None, pending::<io::Result<()>>()).await?
        } else {
            // One lease call asks for ready jobs and waits for later ones. A separate first call without a wait
            // would be answered only after the commit under way, and only then would the connection begin to wait.
            // Jobs that are due when the wait ends are still given. An example is a job that was put just before,
            // with a delay as long as the wait. Jobs that are ready when the client ends its side are given, too,
            // whether or not the client still reads.
            let _waits = self.door.tubes.wait(&self.queues);
            let _waiting = Counted::new(&self.door.counters.waiting);
            caller.lease(lease, wait.saturating_add(ROUNDED_UP), None, wire.end()).await?
        };
        let Leasing { leased, held, end } = leased?;
        match end {
            WaitEnd::Stopped => Err(End::Stop.into()),
            WaitEnd::Broken(error) => Err(error.into()),
            _ if !leased.is_empty() => Ok((leased, held)),
            WaitEnd::Ended => Err(Reply::TimedOut.into()),
            _ if warn_in.is_some_and(|warn_in| warn_in <= timeout) => Err(Reply::DeadlineSoon.into()),
            _ => Err(Reply::TimedOut.into()),
        }
    }

    /// The largest number of jobs that may be given together.
    fn given_max(&self) -> usize {
        let longest = usize::try_from(self.door.job_bytes_max).unwrap_or(usize::MAX).max(1);
        (GIVEN_BYTES_MAX / longest).clamp(1, TOGETHER_MAX)
    }

    /// Notes that the connection has reserved these jobs. They go back if it ends.
    fn take(&mut self, leased: &[Leased]) {
        leased.iter().for_each(|one| self.reserved.insert(one));
    }

    async fn hand_over(&mut self, leased: &[Leased], wire: &mut Wire<'_>) -> io::Result<()> {
        self.take(leased);
        say_reserved(leased, wire).await
    }

    fn is_worker(&mut self) {
        self.worker.get_or_insert_with(|| Counted::new(&self.door.counters.workers));
    }
}

async fn say_reserved(leased: &[Leased], wire: &mut Wire<'_>) -> io::Result<()> {
    for one in leased {
        let (body, _) = one.body.payload_at(one.step);
        wire.say(&Reply::Reserved { id: one.id, body }).await?;
    }
    Ok(())
}
