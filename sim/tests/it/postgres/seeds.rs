//! Runs of several nodes above one database.

use std::collections::BTreeMap;

use tickwheel_sim::cluster::{self, Outcome};
use tickwheel_sim::database::Wrong;

/// Runs the seed in the environment alone, and prints its events.
const SEED: &str = "TICKWHEEL_SIM_SEED";

/// Seeds that failed once.
const FAILED_ONCE: [u64; 1] = [
    // A lease was written down with the instant that its worker was told, so a clock that was set back held its task.
    1_795_899_528_803_375,
];

fn passes(seed: u64) -> Outcome {
    let first = cluster::run(seed, Wrong::Nothing, false);
    assert!(
        first.violation.is_none(),
        "seed {seed} breaks {:#?}; {SEED}={seed} cargo test -p tickwheel-sim --test it one_seed -- --ignored --nocapture",
        first.violation
    );
    let second = cluster::run(seed, Wrong::Nothing, false);
    assert_eq!(first.trace_hash, second.trace_hash, "two runs of seed {seed} differ");
    first
}

#[test]
fn seeds_that_once_failed_pass() {
    for seed in FAILED_ONCE {
        passes(seed);
    }
}

#[test]
fn the_first_seeds_pass() {
    let outcomes: Vec<Outcome> = (0..60).map(passes).collect();
    let mut situations: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in outcomes.iter().flat_map(Outcome::situations) {
        *situations.entry(name).or_default() += count;
    }
    println!("{situations:#?}");
    // The rarest situation, a batch that a fail-over lost before its outcome was known, comes once in 20 seeds.
    for (name, count) in situations {
        assert!(count > 0, "the seeds are too tame: no {name}");
    }
}

#[test]
#[ignore = "for one seed, see the message of a failure"]
fn one_seed() {
    let seed = std::env::var(SEED).expect("the number of the seed").parse().expect("a number");
    let outcome = cluster::run(seed, Wrong::Nothing, true);
    assert!(outcome.violation.is_none(), "{:#?}", outcome.violation);
}
