//! The keeper: one client that begins jobs, writes down how far they are, and forgets them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tickwheel_engine::{CallId as ProductCall, Input};
use tickwheel_queue as product;

use super::{Step, World};
use crate::options::Options;
use crate::oracle::Violation;
use crate::oracle::jobs::{Change, Ledger};
use crate::rng::Rng;

/// If there are at least this number of jobs besides the newest one, the next change forgets a job and begins none.
const JOBS_MAX: usize = 6;

/// The keeper, with its ledger of jobs.
pub(super) struct Keeper {
    rng: Rng,
    percent: u64,
    ledger: Ledger,
    /// The number of the call that the keeper waits for, and the change that it asked for (`None`: a read of all jobs).
    open: Option<(u64, Option<Change>)>,
    values: u64,
}

impl Keeper {
    pub(super) fn new(options: &Options, rng: Rng) -> Self {
        Self { rng, percent: options.jobs_percent, ledger: Ledger::default(), open: None, values: 0 }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.open.is_some()
    }

    /// The connection of the keeper is closed.
    pub(super) fn forget(&mut self) {
        self.open = None;
    }

    /// The next change that the keeper asks for; `None`: a read of all jobs.
    fn next(&mut self) -> Option<Change> {
        if self.ledger.is_in_doubt() || self.rng.chance(20) {
            return None;
        }
        let ids: Vec<u64> = self.ledger.ids().collect();
        self.values += 1;
        let change = match ids.as_slice() {
            // The newest job cannot be forgotten.
            [older @ .., _] if older.len() >= JOBS_MAX || !older.is_empty() && self.rng.chance(20) => {
                Change::Forget(self.rng.pick(older))
            }
            [_, ..] if self.rng.chance(60) => Change::Keep(self.rng.pick(&ids), self.values),
            _ => Change::Begin(self.values),
        };
        Some(change)
    }

    /// Takes the answer to what was asked, and checks it.
    fn answered(&mut self, asked: Option<Change>, answer: product::Answer) -> Step {
        use product::{Answer as A, JobError as E, Unavailable as U};
        match (asked, answer) {
            (None, A::Jobs(Ok(jobs))) => {
                let shown: BTreeMap<u64, u64> = jobs.iter().map(|(id, value)| (*id, number(value))).collect();
                self.ledger.seen(&shown)
            }
            (None, A::Jobs(Err(_)))
            | (Some(_), A::ChangeJob(Err(E::Unavailable(U::Indeterminate { .. })))) => Ok(()),
            (Some(_), A::ChangeJob(Ok(id))) => self.ledger.done(id),
            (Some(_), A::ChangeJob(Err(E::Unavailable(U::ReadOnly { .. } | U::Closed)))) => {
                self.ledger.refused();
                Ok(())
            }
            (asked, answer) => {
                let what = format!("{asked:?} of a job was answered {answer:?}");
                Err(Violation { promise: "P8", what, story: Vec::new() })
            }
        }
    }
}

impl World {
    /// Makes the keeper's next call, unless it waits for an answer. The options set the percentage of steps in which it
    /// does so.
    pub(super) fn keep_jobs(&mut self) {
        if self.keeper.is_waiting() || !self.keeper.rng.chance(self.keeper.percent) {
            return;
        }
        let asked = self.keeper.next();
        let input = self.ask_of_jobs(asked);
        self.inputs.push(input);
    }

    fn ask_of_jobs(&mut self, asked: Option<Change>) -> Input {
        self.next_call += 1;
        let id = self.next_call;
        self.trace.event(format_args!("call {id} of the keeper: {asked:?}"));
        self.coverage.kept += 1;
        asked.into_iter().for_each(|change| self.keeper.ledger.called(change));
        self.keeper.open = Some((id, asked));
        Input::Call { call: ProductCall(id), command: command(asked) }
    }

    /// Takes an answer, if it is the keeper's.
    pub(super) fn answer_keeper(&mut self, id: u64, answer: &product::Answer) -> Result<bool, Violation> {
        let Some((_, asked)) = self.keeper.open.take_if(|(open, _)| *open == id) else { return Ok(false) };
        self.trace.event(format_args!("call {id} of the keeper is answered {answer:?}"));
        self.keeper.answered(asked, answer.clone()).map(|()| true)
    }

    /// Checks that the server has all jobs that it acknowledged. It runs when no more faults happen.
    pub(super) fn all_jobs_are_kept(&mut self) -> Step {
        if self.keeper.percent == 0 {
            return Ok(());
        }
        let Input::Call { call, command } = self.ask_of_jobs(None) else { unreachable!("it is a call") };
        self.keeper.open = None;
        let answer = self.ask_calmly(call, command)?;
        self.keeper.answered(None, answer)?;
        if self.keeper.ledger.is_in_doubt() {
            return Err(self.hang("jobs are not shown though the faults are over"));
        }
        Ok(())
    }
}

fn command(asked: Option<Change>) -> product::Command {
    let change = match asked {
        None => return product::Command::Jobs(product::ListJobs),
        Some(Change::Begin(number)) => product::ChangeJob::Begin { value: value(number) },
        Some(Change::Keep(id, number)) => product::ChangeJob::Keep { id, value: value(number) },
        Some(Change::Forget(id)) => product::ChangeJob::Forget { id },
    };
    product::Command::ChangeJob(change)
}

/// The value that stands for a number. Values of different numbers may have different lengths.
fn value(number: u64) -> Arc<[u8]> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize(8 + (number * 37 % 250) as usize, number as u8);
    bytes.into()
}

/// The number that a value stands for. Bytes that no call has written give `u64::MAX`, which no call has as its number.
fn number(bytes: &Arc<[u8]>) -> u64 {
    let number = bytes.first_chunk().copied().map(u64::from_be_bytes);
    number.filter(|&number| value(number) == *bytes).unwrap_or(u64::MAX)
}
