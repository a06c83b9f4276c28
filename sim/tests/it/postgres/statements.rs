//! Statements that are wrong on purpose: the seeds find each of them, on the promise that it breaks.

use std::ops::Range;

use tickwheel_sim::bugs::{SELDOM_FOUND, STATEMENTS, Sought};
use tickwheel_sim::cluster;
use tickwheel_sim::database::Wrong;

/// The seeds with which each statement is found. Most are found by a few seeds of any range. For the others the range begins with the first
/// seed that finds them; `BUGS=name scripts/sim bugs` looks for another one after a change.
const SEEDS: [(&str, Range<u64>); 8] = [
    ("no-number-before", 0..60),
    ("resolve-without-lock", 121..141),
    ("unknown-is-done", 0..60),
    ("rollback-is-done", 0..60),
    ("take-beside-others", 0..60),
    ("small-step", 0..60),
    ("inbox-by-cursor", 0..60),
    ("row-deleted-as-read", 0..60),
];

/// Returns the seed that finds the wrong statement, with its promise.
fn find(wrong: Wrong, seeds: Range<u64>) -> Option<(u64, &'static str)> {
    let runs = seeds.map(|seed| (seed, cluster::run(seed, wrong, false).violation));
    // An assertion of the product is no find of the ledger.
    let mut found = runs.filter_map(|(seed, violation)| Some((seed, violation?.promise)));
    found.find(|(_, promise)| *promise != tickwheel_sim::PANIC)
}

#[test]
fn each_wrong_statement_is_found_on_the_promise_that_it_breaks() {
    for bug in STATEMENTS.iter().filter(|bug| !SELDOM_FOUND.contains(&bug.name)) {
        let Sought::Statement(wrong) = bug.sought else { panic!("{} is no statement", bug.name) };
        let seeds = SEEDS.iter().find(|(name, _)| *name == bug.name).map(|(_, seeds)| seeds.clone());
        let seeds = seeds.unwrap_or_else(|| panic!("{} has no seeds", bug.name));
        let found = find(wrong, seeds.clone());
        let Some((seed, promise)) = found else { panic!("{} is not found with {seeds:?}", bug.name) };
        assert!(bug.breaks.contains(&promise), "{}: seed {seed} finds it on {promise}", bug.name);
        println!("{}: seed {seed}, {promise}", bug.name);
    }
}
