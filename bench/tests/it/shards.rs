//! A whole run of `tickwheel-bench shards`, so small that its figures mean nothing.

use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn a_tiny_run_brings_every_figure_and_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a place for files");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickwheel-bench"));
    command.args(["shards", "--rounds=2", "--tasks=60", "--batch=10", "--queues=3", "--dir"]);
    let output = command.arg(dir.path()).output().expect("it starts");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    let csv = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|row| row.split(',').collect()).collect();
    for row in &rows {
        let median: f64 = row[4].parse().expect("a number");
        assert!(median.is_finite() && median >= 0.0, "{row:?}");
    }
    let done: BTreeSet<String> = rows.iter().map(|row| [row[0], row[1], row[3]].join(" ")).collect();
    for workload in ["shards-put", "shards-acked"] {
        for figure in [
            "shards-1 W tasks_s",
            "shards-2 W apart_s",
            "shards-2 W apart_s/shards-1",
            "raw-2 W tasks_s/raw-1",
        ] {
            assert!(done.contains(&figure.replace('W', workload)), "{workload} has no {figure}: {csv}");
        }
    }
    assert!(talk.contains("goal >= 1.6"), "{talk}");
    assert_eq!(std::fs::read_dir(dir.path()).expect("the place").count(), 0, "something is left");
}
