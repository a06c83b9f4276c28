//! Runs every seed that failed once, and some others.

use tickwheel_sim::rng::Rng;
use tickwheel_sim::{Options, Watch, run};

fn passes(seed: u64) {
    let options = Options::of_seed(&mut Rng::new(seed));
    let first = run(seed, &options, Watch::default());
    assert!(
        first.violation.is_none(),
        "seed {seed} breaks {:?}; cargo run --release -p tickwheel-sim -- --seed {seed} --trace",
        first.violation
    );
    let second = run(seed, &options, Watch::default());
    assert_eq!(first.trace_hash, second.trace_hash, "two runs of seed {seed} differ");
    let met = first.coverage;
    assert!(met.calls >= 200 && met.crashes >= 2 && met.checkpoints >= 1, "seed {seed} is too tame: {met}");
}

#[test]
fn seeds_that_once_failed_pass() {
    let lines =
        include_str!("../../seeds.txt").lines().map(|line| line.split('#').next().unwrap_or("").trim());
    let seeds: Vec<u64> =
        lines.filter(|line| !line.is_empty()).map(|line| line.parse().expect(line)).collect();
    assert!(seeds.len() >= 6, "the list of seeds has shrunk to {}", seeds.len());
    seeds.into_iter().for_each(passes);
}

#[test]
fn forty_other_seeds_pass() {
    (1_000_000..1_000_040).for_each(passes);
}
