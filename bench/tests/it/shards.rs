//! A whole run of `tickwheel-bench shards`, so small that its figures mean nothing.

use crate::run::Run;

#[test]
fn a_tiny_run_brings_every_figure_and_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a place for files");
    let words = ["shards", "--rounds=2", "--tasks=60", "--batch=10", "--queues=3"];
    let run = Run::of(&words, dir.path());
    let (done, Run { talk, csv }) = (run.figures(), &run);
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
