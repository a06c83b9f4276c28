//! A whole run of `tickwheel-bench push` without brokers, so small that its figures mean nothing.

use std::process::Command;

use crate::run::Run;

#[test]
fn a_tiny_run_brings_every_figure_and_leaves_no_file() {
    let dir = tempfile::tempdir().expect("a place for files");
    let mut words = vec!["push", "--only=webhook,alone,lateness,outage", "--rounds=2", "--messages=600"];
    words.extend(["--late-seconds=1", "--ready=100", "--down-seconds=1"]);
    let run = Run::of(&words, dir.path());
    let (done, Run { talk, csv }) = (run.figures(), &run);
    for figure in [
        "webhook push-rate messages_s",
        "webhook push-rate bare_s",
        "webhook push-rate messages_s/bare",
        "alone push-rate messages_s",
        "webhook push-lateness p99_ms",
        "control-sleep push-lateness p99_ms",
        "webhook push-outage cpu_percent",
        "webhook push-outage idle_percent",
    ] {
        assert!(done.contains(figure), "{figure} is missing: {csv}");
    }
    for line in ["goal >= 5000", "goal >= 0.5", "goal <= 20", "goal <= 1"] {
        assert!(talk.contains(line), "{line:?} is missing: {talk}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).expect("the place").count(), 0, "something is left");
}

#[test]
fn a_broker_that_is_not_installed_is_named() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickwheel-bench"));
    command.env("PATH", "").env_remove("TICKWHEEL_BEANSTALKD");
    let output = command.args(["push", "--only=beanstalk"]).output().expect("it starts");
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(talk.contains("SKIPPED beanstalk: beanstalkd is not installed"), "{talk}");
    assert!(!output.status.success(), "nothing was measured: {talk}");
}
