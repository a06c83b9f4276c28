//! A whole run of `tickwheel-bench store`, so small that its figures mean nothing: every part works, and leaves nothing behind.

use std::collections::BTreeSet;

use crate::run::Run;

#[test]
fn a_tiny_run_brings_every_figure_and_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a place for files");
    let words = ["store", "--pending=3000", "--memory=1000,2000,3000", "--ms=40", "--rounds=1"];
    let run = Run::of(&words, dir.path());
    let (rows, Run { talk, csv }) = (run.rows(), &run);
    for row in &rows {
        let median: f64 = row[4].parse().expect("a number");
        assert!(median.is_finite(), "{row:?}");
    }
    let done: BTreeSet<(&str, &str)> = rows.iter().map(|row| (row[0], row[1])).collect();
    let mut expected = BTreeSet::from([("disk", "disk"), ("queue", "s3")]);
    expected.extend(["queue", "queue-async", "http", "fjall-alone"].map(|name| (name, "s1")));
    for workload in ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s8-own", "s9", "s10"] {
        expected.extend([("store", workload), ("fjall", workload)]);
    }
    assert_eq!(done, expected);
    for (metric, workload) in [
        ("ops_s/64-raw", "s1"),
        ("tasks_s/1000-raw", "s2"),
        ("tasks_s/fjall", "s2"),
        ("after_ms/before", "s6"),
        ("worst_ms/raw", "s7"),
        ("slope_bytes", "s8"),
        ("handed_bytes/record", "s9"),
        ("open_s", "s10"),
    ] {
        let found = rows.iter().any(|row| row[0] == "store" && row[1] == workload && row[3] == metric);
        assert!(found, "{workload} has no {metric}: {csv}");
    }
    for line in ["data on ", "goal >= 0.25", "goal <= 3"] {
        assert!(talk.contains(line), "{line:?} is missing: {talk}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).expect("the place").count(), 0, "something is left");
}
