//! Runs the examples that tell a story by a clock of their own: the same one each time, to the millisecond.

use std::process::Command;

/// What the program at `path` says.
fn told(path: &str) -> Vec<String> {
    let output = Command::new(path).output().expect("run the example");
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the examples print UTF-8").lines().map(str::to_owned).collect()
}

#[test]
fn rpc_timeouts_tells_its_story() {
    let expected = [
        "     0.000 s  #1 sent: stock",
        "     0.000 s  #2 sent: price",
        "     0.000 s  #3 sent: rating",
        r#"     0.030 s  stock: Ok("12 left")"#,
        "     1.200 s  #4 sent: price",
        "     1.200 s  #5 sent: rating",
        "     1.260 s  the answer to #2 is late, heard: false",
        r#"     1.260 s  price: Ok("9.95")"#,
        "     2.600 s  #6 sent: rating",
        "     3.600 s  rating: Err(TimedOut { attempts: 3 })",
        "    11.260 s  0 on their way, 1 late, 0 timers",
    ];
    assert_eq!(told(env!("CARGO_BIN_EXE_rpc_timeouts")), expected);
}

#[test]
fn idle_connections_tells_its_story() {
    let expected = [
        "    40.000 s  connection 2 was heard",
        "    40.000 s  connection 3 said goodbye",
        "    60.000 s  connection 1 is idle: closed",
        "   100.000 s  connection 2 is idle: closed",
        "   190.000 s  10000 connections are open, 900000 packets later, with 10000 timeouts",
    ];
    assert_eq!(told(env!("CARGO_BIN_EXE_idle_connections")), expected);
}

#[test]
fn expiring_cache_tells_its_story() {
    let expected = [
        "     0.000 s  2 sessions",
        "  1200.000 s  anna puts something into her basket",
        "  1800.000 s  anna: Some(2), ben: None",
        "  3000.000 s  anna: None, 0 sessions, 0 timeouts",
    ];
    assert_eq!(told(env!("CARGO_BIN_EXE_expiring_cache")), expected);
}

#[test]
fn cron_like_tells_its_story() {
    let expected = [
        "     0.000 s  inbox: 10 seconds of work",
        "    55.000 s  inbox: 10 seconds of work",
        "    65.001 s  report",
        "   110.000 s  inbox: 10 seconds of work",
        "   120.001 s  report",
        "   150.000 s  the machine stands still",
        "   380.000 s  inbox: 10 seconds of work",
        "   390.000 s  report",
        "   390.000 s  and goes on: one report makes up for all, and the grid stays",
        "   420.000 s  report",
        "   435.000 s  inbox: 10 seconds of work",
        r#"   460.000 s  left: ["report"]"#,
        "   480.000 s  report",
    ];
    assert_eq!(told(env!("CARGO_BIN_EXE_cron_like")), expected);
}
