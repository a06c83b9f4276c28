//! [`Search`]: many runs of several nodes above one database, on some threads.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{Outcome, run};
use crate::bugs::Enough;
use crate::database::Wrong;
use crate::run::PANIC;

/// The runs of a search, and how to run them.
#[derive(Clone, Debug)]
pub struct Search {
    /// The seeds, in this order.
    pub seeds: Vec<u64>,
    /// The statement that is wrong on purpose.
    pub wrong: Wrong,
    /// The number of threads.
    pub jobs: usize,
    /// Whether to run each seed twice and to compare the two.
    pub twice: bool,
    /// Whether a run that ended with a panic of the product is not counted as a failure, because the ledger has to find the bug.
    pub past_panics: bool,
    /// When to stop.
    pub enough: Enough,
}

/// A seed that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The broken promise, or `determinism`.
    pub promise: &'static str,
    /// The words of the violation.
    pub what: String,
    /// The events of the key, one a line.
    pub story: Vec<String>,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct Searched {
    /// The failures, the lowest seed first.
    pub failures: Vec<Failure>,
    /// The number of seeds that were run.
    pub runs: u64,
    /// The number of seeds that ended with a panic of the product and were not counted as failures.
    pub panics: u64,
    /// How often each situation was met.
    pub situations: BTreeMap<&'static str, u64>,
}

impl Search {
    /// Runs the seeds. `progress` is called after each seed with the number of seeds so far.
    ///
    /// # Panics
    /// If a thread panicked, which is a fault of the simulator.
    pub fn go(&self, progress: impl Fn(u64) + Sync) -> Searched {
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let total = Mutex::new(Searched::default());
        let worker = || {
            while !stop.load(Ordering::Relaxed) {
                let at = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                let Some(&seed) = self.seeds.get(at) else { return };
                let (outcome, failure) = self.try_seed(seed);
                let mut total = total.lock().expect("no worker panics while it holds this");
                total.runs += 1;
                for (name, count) in outcome.situations() {
                    *total.situations.entry(name).or_default() += count;
                }
                progress(total.runs);
                match failure {
                    None => {}
                    Some(failure) if self.past_panics && failure.promise == PANIC => total.panics += 1,
                    Some(failure) => {
                        // A verdict was given without the failures that come later.
                        if !stop.load(Ordering::Relaxed) {
                            total.failures.push(failure);
                        }
                        let promises = total.failures.iter().map(|failure| failure.promise);
                        stop.fetch_or(self.enough.is_met_by(promises), Ordering::Relaxed);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(worker);
            }
        });
        let mut searched = total.into_inner().expect("no worker panics while it holds this");
        searched.failures.sort_by_key(|failure| failure.seed);
        searched
    }

    fn try_seed(&self, seed: u64) -> (Outcome, Option<Failure>) {
        let first = run(seed, self.wrong, false);
        if let Some(violation) = first.violation.clone() {
            let (promise, what, story) = (violation.promise, violation.what, violation.story);
            return (first, Some(Failure { seed, promise, what, story }));
        }
        let differs = self.twice && run(seed, self.wrong, false).trace_hash != first.trace_hash;
        let failure = differs.then(|| Failure {
            seed,
            promise: "determinism",
            what: "two runs of the seed differ".to_owned(),
            story: Vec::new(),
        });
        (first, failure)
    }
}
