//! The server of the test kit does what the tests of the store need: it survives a crash, and a standby takes its place.

use crate::kit::{Server, Settings};
use rustix::process::Signal;

#[test]
fn a_killed_server_has_what_was_committed_and_a_stopped_one_too() {
    let Some(mut server) = Server::start() else { return };
    server.psql("CREATE TABLE kept (a int); INSERT INTO kept VALUES (1)");
    let mut open = server.database_named("postgres").session("postgres");
    open.run("BEGIN; INSERT INTO kept VALUES (2)");
    server.kill();
    server.start_again();
    assert_eq!(server.psql("SELECT a FROM kept"), "1");
    assert!(server.log().contains("database system was not properly shut down"), "{}", server.log());
    server.psql("INSERT INTO kept VALUES (3)");
    server.restart();
    assert_eq!(server.psql("SELECT a FROM kept ORDER BY a"), "1\n3");
    assert_eq!(server.psql("SHOW fsync"), "on");
    let directory = server.directory().to_owned();
    drop(server);
    assert!(!directory.exists(), "the directory stays");
}

#[test]
fn a_stopped_process_answers_after_it_continues() {
    let settings = Settings { fsync: false, ..Settings::default() };
    let Some(server) = Server::start_with(&settings) else { return };
    assert_eq!(server.psql("SHOW fsync"), "off");
    let mut session = server.database_named("postgres").session("postgres");
    assert_eq!(session.run("SELECT 1"), "1");
    server.signal_all(Signal::STOP);
    session.send("SELECT 2");
    server.signal_all(Signal::CONT);
    assert_eq!(session.answer(), "2");
}

#[test]
fn a_synchronous_standby_is_promoted_with_all_commits_on_a_new_timeline() {
    let Some(mut primary) = Server::start() else { return };
    primary.configure(&[("synchronous_standby_names", "'ANY 1 (b)'".to_owned())]);
    let standby = primary.standby("b");
    // The commit returns once the standby has it.
    primary.psql("CREATE TABLE kept AS SELECT 1 AS a");
    let state = "SELECT application_name, sync_state FROM pg_stat_replication";
    assert_eq!(primary.psql(state), "b|quorum");
    let timeline = "SELECT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)";
    assert_eq!(primary.psql(timeline), "00000001");
    primary.kill();
    standby.promote();
    assert_eq!(standby.psql("SELECT a FROM kept"), "1");
    assert_eq!(standby.psql(timeline), "00000002");
    assert_eq!(standby.psql("SHOW synchronous_standby_names"), "ANY 1 (b)", "the copy has the settings");
}
