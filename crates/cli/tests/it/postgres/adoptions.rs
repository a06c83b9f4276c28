//! `tickwheel cluster adopt` beside a server that works.

use std::fs::{File, read_to_string};

use rustix::process::Signal;

use crate::kit::{self, until};
use crate::postgres::words::{ask, asked, fails, succeeds};
use crate::server::Server;

/// A bug that was found: 12 of 40 puts failed, because the command took the shards from a server that worked.
#[test]
fn a_server_that_works_keeps_its_shards_unless_they_are_taken_by_force() {
    let Some(postgres) = kit::shared() else { return };
    let database = postgres.database();
    let url = database.url();
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let log = temporary.path().join("log");
    let words = ["--listen", "127.0.0.1:0", "--postgres", &url, "--node", "first"];
    let server = Server::start_logged(&words, File::create(&log).expect("a file"));
    let is_ready = || ask(&server, "GET", "/readyz", "").0 == 200;
    until("it has the shards", is_ready);
    let epochs =
        || database.psql("SELECT max(epoch), (SELECT adoptions FROM tickwheel.cluster) FROM tickwheel.shard");
    let before = epochs();
    let adopt = ["cluster", "adopt", "--postgres", &url];
    succeeds(&adopt);
    let told = fails(&[&adopt[..], &["--yes"]].concat());
    for text in ["the server `first` at ", "works with this database", "nothing was changed", "--force"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert_eq!(epochs(), before);
    assert!(is_ready());

    succeeds(&[&adopt[..], &["--yes", "--force"]].concat());
    until("it says why", || read_to_string(&log).expect("a file").contains("event=\"shards_adopted\""));
    until("it has the shards again", is_ready);
    asked(&server, "PUT", "/v1/queues/q/tasks/a", r#"{"delay":"1h"}"#);
    assert_eq!(server.stop(Signal::TERM).code(), Some(0));
    // No server works any more.
    succeeds(&[&adopt[..], &["--yes"]].concat());
}
