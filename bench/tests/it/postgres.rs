//! A whole run of `tickwheel-bench postgres`, so small that its figures mean nothing.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use crate::run::Run;

#[test]
fn a_tiny_run_brings_every_figure_and_leaves_no_file() {
    if tickwheel_testing::postgres().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a place for files");
    // The server runs as a user of its own, who has to enter the folder.
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("the folder is ours");
    let mut words = vec!["postgres", "--rounds=2", "--tasks=60", "--batch=10", "--queues=3", "--singles=10"];
    words.push("--held-seconds=1");
    let run = Run::of(&words, dir.path());
    let (done, Run { talk, csv }) = (run.figures(), &run);
    for workload in ["pg-schedule", "pg-acked"] {
        for name in ["tickwheel", "raw-1", "raw-4", "jobs"] {
            assert!(done.contains(&format!("{name} {workload} tasks_s")), "{name} {workload}: {csv}");
        }
        for ratio in ["floor", "raw-1", "raw-4", "jobs"] {
            assert!(done.contains(&format!("tickwheel {workload} tasks_s/{ratio}")), "{ratio}: {csv}");
        }
    }
    for figure in ["pg-schedule tasks_s/jobs", "pg-single p50_ms/raw-1"] {
        assert!(done.contains(&format!("keyless {figure}")), "keyless {figure} is missing: {csv}");
    }
    for name in ["tickwheel", "raw-1", "jobs"] {
        for figure in ["pg-single p50_ms", "pg-held before_ms", "pg-held cycle_ms", "pg-held cycle_ms/before"]
        {
            assert!(done.contains(&format!("{name} {figure}")), "{name} {figure} is missing: {csv}");
        }
    }
    for line in ["fsync = on", "synchronous_commit = on", "4 of them commit", "goal >= 0.6", "goal <= 2.5"] {
        assert!(talk.contains(line), "{line:?} is missing: {talk}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).expect("the place").count(), 0, "something is left");
}
