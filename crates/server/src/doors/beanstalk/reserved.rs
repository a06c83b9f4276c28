//! The jobs that one connection has reserved.

use std::collections::BTreeMap;

use tickwheel_queue::{Leased, QueueName, Timestamp, Token};

/// The connection forgets jobs whose time is over by the wall clock, if it has more jobs than this. Below this
/// number, each job is kept until the queue says that it is gone, because the clock may have stepped.
const KEPT: usize = 10_000;
/// A connection is warned when one of its jobs has at most this time left (ms). It is the second of beanstalkd plus
/// one millisecond, because instants are rounded up. So a job with a ttr of one second causes a warning at once.
const SOON_MS: u64 = 1_001;

/// A job that a connection has reserved.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) queue: QueueName,
    pub(super) token: Token,
    until: Timestamp,
    ttr_ms: u64,
}

/// All reserved jobs of a connection.
#[derive(Debug, Default)]
pub(super) struct Reserved(BTreeMap<u64, Job>);

impl Reserved {
    /// Adds a job.
    pub(super) fn insert(&mut self, leased: &Leased) {
        let (queue, token, until) = (leased.queue.clone(), leased.token, leased.lease_until);
        self.0.insert(leased.id, Job { queue, token, until, ttr_ms: leased.lease_ms });
    }

    /// Puts a job back that the connection still has.
    pub(super) fn put_back(&mut self, id: u64, job: Job) {
        self.0.insert(id, job);
    }

    pub(super) fn get(&self, id: u64) -> Option<&Job> {
        self.0.get(&id)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Job> {
        self.0.remove(&id)
    }

    /// Renews the time of a job for its whole ttr.
    pub(super) fn extended(&mut self, id: u64, now: Timestamp) {
        if let Some(job) = self.0.get_mut(&id) {
            job.until = now.saturating_plus_ms(job.ttr_ms);
        }
    }

    /// The time until the first job has only [`SOON_MS`] left (ms); `None`: there is no job. Jobs whose time is over
    /// do not count.
    pub(super) fn warn_in_ms(&mut self, now: Timestamp) -> Option<u64> {
        if self.0.len() > KEPT {
            self.0.retain(|_, job| now < job.until);
        }
        let running = self.0.values().filter(|job| now < job.until);
        let first = running.map(|job| job.until).min()?;
        Some(first.ms_since(now).saturating_sub(SOON_MS))
    }

    /// Removes all jobs, and returns their tokens by queue.
    pub(super) fn take_all(&mut self) -> BTreeMap<QueueName, Vec<Token>> {
        let mut tokens: BTreeMap<QueueName, Vec<Token>> = BTreeMap::new();
        for (_, job) in std::mem::take(&mut self.0) {
            tokens.entry(job.queue).or_default().push(job.token);
        }
        tokens
    }
}
