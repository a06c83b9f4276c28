//! Runs many seeds on some threads, until a number of them have failed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::bugs::Enough;
use crate::coverage::Coverage;
use crate::options::Options;
use crate::rng::Rng;
use crate::run::{Outcome, PANIC, Watch, run};

/// The runs of a campaign, and how to run them.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The seeds, in this order.
    pub seeds: Vec<u64>,
    /// Options that replace those of each seed.
    pub set: String,
    /// The number of threads.
    pub jobs: usize,
    /// Further options of each run, such as a trace.
    pub watch: Watch,
    /// Whether a run that ended with a panic of the product is not counted as a failure, because the oracle has to find the bug.
    pub past_panics: bool,
    /// When to stop.
    pub enough: Enough,
}

/// A seed that failed.
#[derive(Debug)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// How the first of its two runs ended.
    pub outcome: Outcome,
    /// The broken promise, or `determinism` or `coverage`.
    pub promise: &'static str,
    /// A sentence that says what went wrong.
    pub why: String,
}

/// The result of a campaign.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The failures, the lowest seed first.
    pub failures: Vec<Failure>,
    /// The number of seeds that were run.
    pub runs: u64,
    /// The situations that the runs met.
    pub coverage: Coverage,
    /// The number of seeds that ended with a panic of the product and were not counted as failures.
    pub panics: u64,
}

/// The options that follow from a seed. Options that `set` names are replaced.
///
/// # Errors
/// A sentence about the part of `set` that is not an option.
pub fn options_of(seed: u64, set: &str) -> Result<Options, String> {
    let mut options = Options::of_seed(&mut Rng::new(seed));
    options.set(set)?;
    Ok(options)
}

/// Runs a seed twice and compares the runs. With `whole`, the run also has to meet the situations that every run has to meet.
///
/// # Errors
/// The failure of the seed.
pub fn run_twice(seed: u64, options: &Options, watch: Watch, whole: bool) -> Result<Outcome, Box<Failure>> {
    let first = run(seed, options, watch);
    let second = run(seed, options, Watch { trace: false, ..watch });
    let (promise, why) = match &first.violation {
        Some(violation) => (violation.promise, violation.what.clone()),
        None if first.trace_hash != second.trace_hash => {
            ("determinism", format!("two runs differ: {:#x} and {:#x}", first.trace_hash, second.trace_hash))
        }
        None if whole && !first.coverage.is_enough() => {
            let what = "a seed has to be 200 calls, 2 crashes and a checkpoint at the least";
            ("coverage", format!("{what}; this one was\n{}", first.coverage))
        }
        None => return Ok(first),
    };
    Err(Box::new(Failure { seed, outcome: first, promise, why }))
}

impl Campaign {
    /// Runs the campaign. `progress` is called after each seed with the number of seeds so far.
    ///
    /// # Panics
    /// If a thread panicked, which is a fault of the simulator.
    pub fn go(&self, progress: impl Fn(u64) + Sync) -> Verdict {
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let total = Mutex::new(Verdict::default());
        // A run with options set by hand, or cut short, need not reach all situations.
        let whole = self.set.is_empty() && self.watch.until_step.is_none();
        let worker = || {
            while !stop.load(Ordering::Relaxed) {
                let at = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
                let Some(&seed) = self.seeds.get(at) else { return };
                let Ok(options) = options_of(seed, &self.set) else { return };
                let came = run_twice(seed, &options, self.watch, whole);
                let mut total = total.lock().expect("no worker panics while it holds this");
                total.runs += 1;
                progress(total.runs);
                match came {
                    Ok(outcome) => total.coverage += outcome.coverage,
                    Err(failure) if self.past_panics && failure.promise == PANIC => total.panics += 1,
                    Err(failure) => {
                        // A verdict was given without the failures that come later.
                        if !stop.load(Ordering::Relaxed) {
                            total.failures.push(*failure);
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
        let mut verdict = total.into_inner().expect("no worker panics while it holds this");
        verdict.failures.sort_by_key(|failure| failure.seed);
        verdict
    }
}
