//! Runs of several nodes above one database.

use tickwheel_sim::cluster::{self, Outcome};
use tickwheel_sim::database::Wrong;

/// Runs the seed in the environment alone, and prints its events.
const SEED: &str = "TICKWHEEL_SIM_SEED";

fn passes(seed: u64) -> Outcome {
    let first = cluster::run(seed, Wrong::Nothing, false);
    assert!(
        first.violation.is_none(),
        "seed {seed} breaks {:#?}; {SEED}={seed} cargo test -p tickwheel-sim --test postgres one_seed -- --ignored --nocapture",
        first.violation
    );
    let second = cluster::run(seed, Wrong::Nothing, false);
    assert_eq!(first.trace_hash, second.trace_hash, "two runs of seed {seed} differ");
    first
}

#[test]
fn the_first_seeds_pass() {
    let seeds = std::env::var("TICKWHEEL_SIM_SEEDS").map_or(60, |number| number.parse().expect("a number"));
    let outcomes: Vec<Outcome> = (0..seeds).map(passes).collect();
    let sum = |count: &dyn Fn(&Outcome) -> u64| outcomes.iter().map(count).sum::<u64>();
    let all = format!(
        "{} steps, {} calls, {} answered, {} lost, {} owners, {} delivered",
        sum(&|one| one.steps),
        sum(&|one| one.seen.calls),
        sum(&|one| one.seen.answered),
        sum(&|one| one.seen.lost),
        sum(&|one| one.seen.owners),
        sum(&|one| one.seen.delivered),
    );
    println!("{all}");
    for (name, count) in [
        ("calls without an answer", sum(&|one| one.seen.lost)),
        ("processes that were killed", sum(&|one| one.seen.mishaps[0])),
        ("processes that were stopped", sum(&|one| one.seen.mishaps[1])),
        ("processes that left", sum(&|one| one.seen.mishaps[2])),
        ("places that were cut off", sum(&|one| one.seen.mishaps[3])),
        ("orphans", sum(&|one| one.met.orphans)),
        ("waits", sum(&|one| one.met.waits)),
        ("batches found done", sum(&|one| one.met.resolved[0])),
        ("batches found absent", sum(&|one| one.met.resolved[1])),
        ("batches of an owner before", sum(&|one| one.met.resolved[2])),
        ("lost batches", sum(&|one| one.met.resolved[3])),
        ("lost commits", sum(&|one| one.met.lost_commits)),
        ("folds", sum(&|one| one.met.folds)),
        ("ended incarnations", sum(&|one| one.met.ended)),
    ] {
        println!("{count} {name}");
        assert!(count >= 3, "the seeds are too tame: {count} {name}; {all}");
    }
}

#[test]
#[ignore = "for one seed, see the message of a failure"]
fn one_seed() {
    let seed = std::env::var(SEED).expect("the number of the seed").parse().expect("a number");
    let outcome = cluster::run(seed, Wrong::Nothing, true);
    assert!(outcome.violation.is_none(), "{:#?}", outcome.violation);
}
