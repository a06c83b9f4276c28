//! Runs the examples that tell a story by a clock of their own: the same one each time, to the millisecond.

use std::process::Command;

/// The output of the program at `path`.
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
        "    65.000 s  report",
        "   110.000 s  inbox: 10 seconds of work",
        "   120.000 s  report",
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

#[test]
fn heartbeat_sessions_tells_its_story() {
    let expected = [
        "     4.000 s  ben commits 700: a sign of life",
        "     5.000 s  carl leaves",
        "    14.000 s  ben of billing was silent for 10 s: gone",
        "    16.000 s  a heartbeat of ben now: Err(UnknownMember)",
        "    16.000 s  1 member, 1 timeout",
    ];
    assert_eq!(told(env!("CARGO_BIN_EXE_heartbeat_sessions")), expected);
}

#[test]
fn produce_acks_tells_its_story() {
    let expected = [
        "     0.005 s  follower 7 has both partitions, 8 has nothing yet",
        "     0.010 s  first: {1: Written { next: 100 }, 2: Written { next: 100 }}",
        "    30.010 s  second: {1: Written { next: 200 }, 2: TimedOut}",
        "    30.010 s  partition 2 moves to another broker",
        "    30.010 s  third: {2: NotLeader}",
        "    30.010 s  0 writes wait, 0 timeouts",
    ];
    assert_eq!(told(env!("CARGO_BIN_EXE_produce_acks")), expected);
}

#[test]
fn fetch_min_bytes_tells_its_story() {
    let expected = [
        "     0.100 s  700 bytes in partition 1",
        "     0.200 s  700 bytes in partition 2: enough",
        "     0.200 s  fetched {1: Ok(700), 2: Ok(700)}",
        "     0.700 s  fetched {1: Ok(0), 2: Ok(0)}",
        "     0.900 s  partition 2 has a new leader",
        "     0.900 s  fetched {1: Ok(0), 2: Err(NotLeader)}",
        "     0.900 s  0 fetches wait, 0 timeouts",
    ];
    assert_eq!(told(env!("CARGO_BIN_EXE_fetch_min_bytes")), expected);
}

#[test]
fn group_join_tells_its_story() {
    let expected = [
        "     0.000 s  anna joins, and ben two seconds later: the wait goes on, from 3 s to 6 s",
        r#"     6.000 s  Joined { generation: 1, leader: "anna", members: ["anna", "ben"] }"#,
        r#"     6.000 s  ben is to work on Ok("partition 2")"#,
        "     6.000 s  carla joins, and so all have to, again",
        "     6.000 s  anna hears Rebalance, and joins; ben is asleep",
        r#"    16.000 s  Joined { generation: 2, leader: "anna", members: ["anna", "carla"] }"#,
        "    16.000 s  anna brings a plan, and carla is silent for 10 s",
        "    26.000 s  anna, ben and carla hear [Rebalance, Unknown, Unknown]",
        r#"    26.000 s  Joined { generation: 3, leader: "anna", members: ["anna"] }"#,
    ];
    assert_eq!(told(env!("CARGO_BIN_EXE_group_join")), expected);
}
