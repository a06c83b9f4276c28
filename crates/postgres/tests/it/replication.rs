//! A primary and its standby: no acknowledgement without the standby, and the process finds the new primary.

use std::time::Duration;

use crate::kit::{Server, key, name, node, put, report, texts, until};
use rustix::process::Signal;
use tickwheel_queue::{Get, GetError, Queue};

/// A primary whose commits wait for its standby `b`.
fn primary_and_standby() -> Option<(Server, Server)> {
    let primary = Server::start()?;
    primary.configure(&[("synchronous_standby_names", "'ANY 1 (b)'".to_owned())]);
    let standby = primary.standby("b");
    let state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'";
    until("the standby is synchronous", || primary.psql(state) == "1");
    Some((primary, standby))
}

/// The URL with both hosts, in this order.
fn url_of(hosts: [&Server; 2]) -> String {
    format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", hosts[0].port(), hosts[1].port())
}

fn until_ready(queue: &Queue) -> Duration {
    until("the queue is ready", || queue.health().ready)
}

/// Runs SQL that must not wait for the standby.
fn alone(server: &Server, sql: &str) -> String {
    server.psql(&format!("SET synchronous_commit = local; {sql}"))
}

#[test]
fn a_commit_whose_wait_was_cancelled_is_not_acknowledged() {
    let Some((primary, standby)) = primary_and_standby() else { return };
    let queue = node(&primary.url(), "first");
    queue.put(put("before", Duration::from_secs(86_400))).wait().expect("stored");
    standby.signal_all(Signal::STOP);
    let pending = queue.put(put("waits", Duration::from_secs(86_400)));
    let waiting = std::thread::spawn(move || pending.wait());
    let backends = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'";
    until("the commit waits for the standby", || {
        alone(&primary, &format!("SELECT count(*) {backends}")).ends_with('1')
    });
    // The row is there for all others from now on, and the server answers with success and a warning.
    for round in 1..=3 {
        alone(&primary, &format!("SELECT count(pg_cancel_backend(pid)) {backends}"));
        let warned = "canceling wait for synchronous replication due to user request";
        until("the wait was cancelled", || primary.log().matches(warned).count() >= round);
        until("it waits again", || alone(&primary, &format!("SELECT count(*) {backends}")) != "0");
        assert!(!waiting.is_finished(), "it was acknowledged without the standby");
    }
    assert_eq!(alone(&primary, "SELECT count(*) FROM tickwheel.task"), "2");
    // The beats wait as well, so the process does not answer.
    until("no answer is given", || !queue.health().ready);
    standby.signal_all(Signal::CONT);
    until("the put is answered", || waiting.is_finished());
    let answer = waiting.join().expect("no panic");
    until_ready(&queue);
    assert_eq!(standby.psql("SELECT count(*) FROM tickwheel.task"), "2");
    assert!(answer.is_ok(), "{answer:?}");
    queue.close();
}

#[test]
fn the_process_finds_the_new_primary_and_refuses_the_old_one() {
    let Some((mut primary, mut standby)) = primary_and_standby() else { return };
    // The old primary is the first host of the URL, so each connection tries it first.
    let queue = node(&url_of([&primary, &standby]), "first");
    for n in 0..50 {
        queue.put(put(&format!("before-{n}"), Duration::from_secs(86_400))).wait().expect("stored");
    }
    let id_before = queue.get(Get::new(&name(), key("before-49"))).wait().expect("there").id;
    let pending: Vec<_> =
        (0..50).map(|n| queue.put(put(&format!("under-way-{n}"), Duration::from_secs(86_400)))).collect();
    primary.kill();
    standby.promote();
    standby.configure(&[("synchronous_standby_names", "''".to_owned())]);
    let took = until_ready(&queue);
    report(&format!("the new primary serves {took:?} after its promotion"));
    let acknowledged: Vec<String> = pending
        .into_iter()
        .enumerate()
        .filter_map(|(n, pending)| pending.wait().ok().map(|_| format!("under-way-{n}")))
        .collect();
    let there = texts(&queue);
    assert!((0..50).all(|n| there.contains(&format!("before-{n}"))));
    assert!(acknowledged.iter().all(|key| there.contains(key)), "acknowledged and lost");
    report(&format!("{} of 50 under way were acknowledged", acknowledged.len()));

    // The old primary comes back and takes changes. The process knows the later timeline.
    primary.start_again();
    primary.psql("SET synchronous_commit = local; ALTER SYSTEM SET synchronous_standby_names = ''");
    primary.psql("SELECT pg_reload_conf()");
    for server in [&primary, &standby] {
        server.psql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'tickwheel/%'",
        );
    }
    let stored = queue.put(put("after", Duration::from_secs(86_400))).wait();
    until_ready(&queue);
    if stored.is_err() {
        queue.put(put("after", Duration::from_secs(86_400))).wait().expect("stored");
    }
    assert_eq!(standby.psql("SELECT count(*) FROM tickwheel.task WHERE key = 'after'"), "1");
    assert_eq!(primary.psql("SELECT count(*) FROM tickwheel.task WHERE key = 'after'"), "0");
    let id = queue.get(Get::new(&name(), key("after"))).wait().expect("there").id;
    assert!(id > id_before, "{id} and {id_before}");

    // Without the new one, the old one alone does not serve.
    standby.stop();
    until("the old primary is refused by name", || {
        let why = queue.health().waits_for.unwrap_or_default();
        why.contains("old primary of an earlier fail-over") && why.contains(&primary.port().to_string())
    });
    let refused = queue.get(Get::new(&name(), key("after"))).wait();
    assert!(matches!(refused, Err(GetError::Unavailable(_))), "{refused:?}");
    standby.start_again();
    until_ready(&queue);
    assert!(texts(&queue).contains("after"));
    queue.close();
}
