//! [`CommitWorker`]: the commits of some shards, through one session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::database::{
    Acquire, Acquisition, Claim, ConnectFailure, Database, Doubt, Failure, Resolution, Rollup, Session,
    ShardBatch,
};

/// A transaction has at most about this many rows and bytes.
const ROWS_MAX: usize = 4_096;
const BYTES_MAX: usize = 1 << 20;
/// The time before the first try to make a session again. The time doubles with each try, up to the longest.
const AGAIN_FIRST: Duration = Duration::from_millis(20);
const AGAIN_LONGEST: Duration = Duration::from_secs(1);

/// Work for a commit worker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Job {
    /// Take a shard.
    Acquire(Acquire),
    /// Commit the batch of a shard. A shard has at most one commit under way.
    Commit(ShardBatch),
    /// Give a shard up.
    Release(Claim),
    /// Replace batches by a rollup.
    Rollup(Rollup),
}

/// The outcome of a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The answer to [`Job::Acquire`].
    Acquisition(Acquisition),
    /// A batch cannot be committed, for a reason that does not go away by itself.
    Uncommitted {
        /// The reason, as a part of a sentence.
        why: String,
    },
    /// A shard could not be taken or given up, for a reason that does not go away by itself.
    Refused {
        /// The reason, as a part of a sentence.
        why: String,
    },
    /// The batch is durable. `last` is the number of the last batch of the shard.
    Committed {
        /// The number of the last batch of the shard.
        last: i64,
    },
    /// The ownership is over.
    Fenced,
    /// The shard was given up, or had another owner already.
    Released,
    /// The rollup is there, or was not made.
    RolledUp {
        /// Whether the rollup is there.
        done: bool,
    },
}

/// Takes jobs of some shards, commits their batches together, and finds out the outcome of each batch whose answer was lost.
///
/// A shard belongs to one commit worker, so its jobs keep their order. A commit worker never cancels a statement: a commit that waits for a standby would then
/// be answered as if it had succeeded.
#[derive(Debug)]
pub struct CommitWorker<D: Database> {
    database: Arc<D>,
    /// The session, and the incarnation that it was made for.
    session: Option<(String, D::Session)>,
    /// Jobs that are no commits, in the order in which they came.
    others: VecDeque<(u32, Job)>,
    commits: BTreeMap<u32, Waiting>,
    /// The shard that comes first in the next transaction, so that each shard has its turn.
    first: u32,
    again: Duration,
    trouble: Option<String>,
}

#[derive(Debug)]
struct Waiting {
    batch: ShardBatch,
    /// Whether the batch may have taken effect.
    in_doubt: bool,
}

/// Whether a commit worker has work left.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Rest {
    /// The commit worker waits for jobs.
    Idle,
    /// The commit worker has jobs that it can go on with at once.
    Work,
    /// The commit worker has jobs that it should try again after this time.
    Again(Duration),
}

impl<D: Database> CommitWorker<D> {
    /// Returns a commit worker without a session and without jobs.
    #[must_use]
    pub fn new(database: Arc<D>) -> Self {
        Self {
            database,
            session: None,
            others: VecDeque::new(),
            commits: BTreeMap::new(),
            first: 0,
            again: AGAIN_FIRST,
            trouble: None,
        }
    }

    /// Adds a job.
    pub fn push(&mut self, shard: u32, job: Job) {
        match job {
            Job::Commit(batch) => drop(self.commits.insert(shard, Waiting { batch, in_doubt: false })),
            other => self.others.push_back((shard, other)),
        }
    }

    /// Returns why the commit worker does not get on, as a part of a sentence; `None`: everything is in order.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Does a part of the work: makes a session if there is none, finds out doubtful outcomes, does one other job, and commits the batches
    /// that wait. Appends the outcomes.
    pub fn turn(&mut self, incarnation: &str, outcomes: &mut Vec<(u32, Outcome)>) -> Rest {
        self.drop_outdated(incarnation, outcomes);
        if self.is_idle() {
            self.trouble = None;
            return Rest::Idle;
        }
        let mut session = match self.take_session(incarnation) {
            Ok(session) => session,
            Err(ConnectFailure::Unreachable(why)) => return self.later(why),
            Err(ConnectFailure::Refused(why)) => {
                // A shard that is asked for learns the reason. Commits wait: the refusal may end, and their outcome may be in doubt.
                self.others.retain(|(shard, job)| {
                    let taken = matches!(job, Job::Acquire(_));
                    if taken {
                        outcomes.push((*shard, Outcome::Refused { why: why.clone() }));
                    }
                    !taken
                });
                return self.later(why);
            }
        };
        match self.work(&mut session, outcomes) {
            Ok(()) => {
                self.session = Some((incarnation.to_owned(), session));
                self.again = AGAIN_FIRST;
                self.trouble = None;
                if self.is_idle() { Rest::Idle } else { Rest::Work }
            }
            Err(Failure::Refused { why, again: _ }) => {
                self.session = Some((incarnation.to_owned(), session));
                self.later(why)
            }
            Err(Failure::Gone { why }) => self.later(why),
        }
    }

    /// Answers the requests for shards that an earlier incarnation made. The database would refuse them for ever, and the later ones would
    /// wait behind them.
    fn drop_outdated(&mut self, incarnation: &str, outcomes: &mut Vec<(u32, Outcome)>) {
        self.others.retain(|(shard, job)| {
            let is_outdated = matches!(job, Job::Acquire(take) if take.incarnation != incarnation);
            if is_outdated {
                outcomes.push((*shard, Outcome::Acquisition(Acquisition::Outdated)));
            }
            !is_outdated
        });
    }

    fn is_idle(&self) -> bool {
        self.others.is_empty() && self.commits.is_empty()
    }

    fn take_session(&mut self, incarnation: &str) -> Result<D::Session, ConnectFailure> {
        match self.session.take() {
            Some((of, session)) if of == incarnation => Ok(session),
            _ => self.database.connect(incarnation),
        }
    }

    fn later(&mut self, why: String) -> Rest {
        self.trouble = Some(why);
        let again = self.again;
        self.again = (2 * again).min(AGAIN_LONGEST);
        Rest::Again(again)
    }

    /// Does each kind of work once.
    ///
    /// # Errors
    /// The session is gone, or the same work may succeed later. All jobs that have no outcome are still there.
    fn work(&mut self, session: &mut D::Session, outcomes: &mut Vec<(u32, Outcome)>) -> Result<(), Failure> {
        let mut later = None;
        // A shard that has to wait holds up no other shard of the commit worker.
        for act in [Self::resolve, Self::do_other, Self::commit] {
            match act(self, session, outcomes) {
                Ok(()) => {}
                Err(failure @ Failure::Refused { .. }) => later = later.or(Some(failure)),
                Err(gone) => return Err(gone),
            }
        }
        later.map_or(Ok(()), Err)
    }

    fn resolve(
        &mut self,
        session: &mut D::Session,
        outcomes: &mut Vec<(u32, Outcome)>,
    ) -> Result<(), Failure> {
        let doubtful = self.commits.iter().filter(|(_, waiting)| waiting.in_doubt).map(|(shard, _)| *shard);
        let mut later = None;
        for shard in doubtful.collect::<Vec<_>>() {
            let Some(waiting) = self.commits.get_mut(&shard) else { continue };
            let doubt = Doubt { claim: waiting.batch.claim, no: waiting.batch.no };
            let resolution = match session.resolve(&doubt) {
                Ok(resolution) => resolution,
                Err(failure @ Failure::Refused { .. }) => {
                    later = later.or(Some(failure));
                    continue;
                }
                Err(gone) => return Err(gone),
            };
            let outcome = match resolution {
                Resolution::Done { last } => Outcome::Committed { last },
                Resolution::Absent => {
                    waiting.in_doubt = false;
                    continue;
                }
                // The numbers that the engine has seen are gone, so the engine has to begin anew.
                Resolution::Moved | Resolution::Lost => Outcome::Fenced,
            };
            self.commits.remove(&shard);
            outcomes.push((shard, outcome));
        }
        later.map_or(Ok(()), Err)
    }

    fn do_other(
        &mut self,
        session: &mut D::Session,
        outcomes: &mut Vec<(u32, Outcome)>,
    ) -> Result<(), Failure> {
        let Some((shard, job)) = self.others.front() else { return Ok(()) };
        let shard = *shard;
        let outcome = match job {
            Job::Acquire(take) => {
                let taken = session.acquire(take);
                // An engine that asks for the shard anew does not wait for an earlier commit any more, and no owner before the acquisition can
                // commit behind it.
                if let Ok(Acquisition::Acquired(_)) = &taken {
                    self.commits.remove(&shard);
                }
                taken.map(Outcome::Acquisition)
            }
            Job::Release(claim) => session.release(*claim).map(|()| Outcome::Released),
            Job::Rollup(rollup) => session.roll_up(rollup).map(|()| Outcome::RolledUp { done: true }),
            Job::Commit(_) => unreachable!("commits are kept apart"),
        };
        let outcome = match outcome {
            Ok(outcome) => outcome,
            // The owner makes a rollup again after some more commits.
            Err(Failure::Refused { .. }) if matches!(job, Job::Rollup(_)) => {
                Outcome::RolledUp { done: false }
            }
            Err(Failure::Refused { why, again: false }) => Outcome::Refused { why },
            Err(failure) => {
                if matches!(failure, Failure::Refused { .. }) {
                    self.others.rotate_left(1);
                }
                return Err(failure);
            }
        };
        self.others.pop_front();
        outcomes.push((shard, outcome));
        Ok(())
    }

    fn commit(
        &mut self,
        session: &mut D::Session,
        outcomes: &mut Vec<(u32, Outcome)>,
    ) -> Result<(), Failure> {
        let shards = self.next_transaction();
        match shards[..] {
            [] => return Ok(()),
            [shard] => return self.commit_alone(session, shard, outcomes),
            _ => {}
        }
        match self.commit_together(session, &shards, outcomes) {
            Err(Failure::Refused { .. }) => {
                let mut later = None;
                for shard in shards {
                    match self.commit_alone(session, shard, outcomes) {
                        Ok(()) => {}
                        Err(failure @ Failure::Refused { .. }) => later = later.or(Some(failure)),
                        Err(gone) => return Err(gone),
                    }
                }
                later.map_or(Ok(()), Err)
            }
            other => other,
        }
    }

    fn commit_alone(
        &mut self,
        session: &mut D::Session,
        shard: u32,
        outcomes: &mut Vec<(u32, Outcome)>,
    ) -> Result<(), Failure> {
        match self.commit_together(session, &[shard], outcomes) {
            Err(Failure::Refused { why, again: false }) => {
                self.commits.remove(&shard);
                outcomes.push((shard, Outcome::Uncommitted { why }));
                Ok(())
            }
            other => other,
        }
    }

    /// Returns the shards whose batches go into the next transaction, in rising order.
    fn next_transaction(&mut self) -> Vec<u32> {
        let (mut rows, mut bytes) = (0, 0);
        let mut shards = Vec::new();
        let in_turn = self.commits.range(self.first..).chain(self.commits.range(..self.first));
        for (shard, waiting) in in_turn.filter(|(_, waiting)| !waiting.in_doubt) {
            rows += waiting.batch.rows();
            bytes += waiting.batch.bytes();
            if !shards.is_empty() && (rows > ROWS_MAX || bytes > BYTES_MAX) {
                self.first = *shard;
                break;
            }
            shards.push(*shard);
        }
        shards.sort_unstable();
        shards
    }

    /// Commits the batches of these shards in one transaction.
    ///
    /// # Errors
    /// [`Failure`]. If the answer was lost, all batches are in doubt.
    fn commit_together(
        &mut self,
        session: &mut D::Session,
        shards: &[u32],
        outcomes: &mut Vec<(u32, Outcome)>,
    ) -> Result<(), Failure> {
        let batches: Vec<&ShardBatch> =
            shards.iter().filter_map(|shard| self.commits.get(shard)).map(|waiting| &waiting.batch).collect();
        let committed = session.commit(&batches);
        match committed {
            Ok(took_part) => {
                for shard in shards {
                    if took_part.contains(shard) {
                        if let Some(Waiting { batch, .. }) = self.commits.remove(shard) {
                            outcomes.push((*shard, Outcome::Committed { last: batch.no }));
                        }
                    } else if let Some(waiting) = self.commits.get_mut(shard) {
                        // The reason decides what becomes of the batch: another owner, a loss, or an earlier try that took effect.
                        waiting.in_doubt = true;
                    }
                }
                Ok(())
            }
            Err(Failure::Gone { why }) => {
                for shard in shards {
                    if let Some(waiting) = self.commits.get_mut(shard) {
                        waiting.in_doubt = true;
                    }
                }
                Err(Failure::Gone { why })
            }
            Err(refused) => Err(refused),
        }
    }
}
