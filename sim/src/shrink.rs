//! Makes a failure smaller: it looks for a run with fewer faults, clients, keys and calls that breaks the same promise.

use crate::campaign::run_twice;
use crate::options::Options;
use crate::run::{Outcome, Watch};

/// The largest number of pairs of runs that are spent on one failure.
const RUNS_MAX: u32 = 400;

/// The options that are reduced and their least values, the most effective option first. Other options stay as they are.
const LEAST: [(&str, u64); 30] = [
    ("calls", 0),
    ("crashes", 0),
    ("net-percent", 0),
    ("jump-permille", 0),
    ("glitch-permille", 0),
    ("stopped-jump-percent", 0),
    ("freeze-permille", 0),
    ("slew-permille", 0),
    ("stall-permille", 0),
    ("error-percent", 0),
    ("read-error-percent", 0),
    ("full-permille", 0),
    ("probe-percent", 0),
    ("lost-percent", 0),
    ("undelivered-percent", 0),
    ("retry-percent", 0),
    ("big-percent", 0),
    ("crowd-percent", 0),
    ("far-percent", 0),
    ("guarded", 0),
    ("tight-percent", 0),
    ("delete-percent", 0),
    ("import-percent", 0),
    ("clients", 1),
    ("queues", 1),
    ("keys", 1),
    ("time-percent", 1),
    ("horizon-ms", 2),
    ("checkpoint-after-bytes", 2_000),
    ("log-file-bytes", 8_192),
];

/// A failure that was made smaller.
#[derive(Debug)]
pub struct Shrunk {
    /// The reduced options.
    pub options: Options,
    /// How the run of the seed with these options ended.
    pub outcome: Outcome,
    /// The number of pairs of runs that the search took.
    pub runs: u32,
}

/// Reduces one option after the other by bisection, and repeats that while it helps. A reduced value is kept if the
/// run still breaks `promise`. `None`: no smaller failure was found.
#[must_use]
pub fn shrink(seed: u64, options: &Options, promise: &str) -> Option<Shrunk> {
    let mut best: Option<Shrunk> = None;
    let mut current = options.clone();
    let mut runs = 0;
    let mut fails = |options: &Options| {
        runs += 1;
        let failure = run_twice(seed, options, Watch::default(), false).err()?;
        (failure.promise == promise).then_some((failure.outcome, runs))
    };
    loop {
        let before = current.clone();
        for (name, least) in LEAST {
            let (mut low, mut high) = (least, current.get(name).unwrap_or(least));
            while low < high {
                // The least value is tried first, because most options have no effect on a failure.
                let value = if low == least { least } else { low + (high - low) / 2 };
                let mut smaller = current.clone();
                if smaller.set(&format!("{name}={value}")).is_err() {
                    break;
                }
                match fails(&smaller) {
                    Some((outcome, runs)) => {
                        high = value;
                        current = smaller.clone();
                        best = Some(Shrunk { options: smaller, outcome, runs });
                    }
                    None => low = value + 1,
                }
                if best.as_ref().is_some_and(|best| best.runs >= RUNS_MAX) {
                    return best;
                }
            }
        }
        if current == before {
            return best;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_that_is_made_smaller_is_one() {
        for (name, _) in LEAST {
            assert!(Options::names().any(|known| known == name), "{name}");
        }
    }
}
