//! `demo --postgres`: the same promises, and no trace in the databases of others.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::kit::{self, until};
use crate::postgres::words::{fails, told};
use crate::program::tickwheel;
use crate::server::Server;

/// The databases that a demo has made and not removed.
fn left(server: &kit::Server) -> String {
    server.psql("SELECT datname FROM pg_database WHERE datname LIKE 'tickwheel\\_demo\\_%'")
}

/// A server of its own, because another test of this binary may run a demo on the shared one.
fn own_server() -> Option<kit::Server> {
    kit::Server::start()
}

#[test]
fn it_keeps_its_promises_and_leaves_no_database() {
    let Some(server) = own_server() else { return };
    // The named database has tasks of a server that runs meanwhile.
    let database = server.database();
    let url = database.url();
    let running = Server::start(&["--listen", "127.0.0.1:0", "--postgres", &url, "--node", "own"]);
    let put = tickwheel(&["put", "close", "order:1", "--in", "1h", "--server", &running.url]).output();
    assert!(put.expect("run it").status.success());
    let tasks = || database.psql("SELECT shard, id, queue, key, due_at, seq FROM tickwheel.task");
    let before = tasks();
    assert!(before.contains("order:1"), "{before}");

    let temporary = tempfile::tempdir().expect("a temporary directory");
    let mut demo = tickwheel(&["demo", "--postgres", &url]);
    let output = demo.env("TMPDIR", temporary.path()).output().expect("run the demo");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), told(&output));
    assert!(output.status.success(), "{out}{err}");
    let number = |name: &str| -> u64 {
        let line = out.lines().find(|line| line.trim_start().starts_with(name)).expect(name);
        let word = line.trim_start()[name.len()..].split_whitespace().next().expect("a number");
        word.parse().expect("a number")
    };
    assert!(number("orders placed") > 0 && number("paid in time") > 0 && number("closed  ") > 0, "{out}");
    assert_eq!((number("lost"), number("early"), number("closed though paid")), (0, 0, 0), "{out}");
    assert_eq!(number("kills (SIGKILL)"), 1, "{out}");
    assert!(out.contains("Every promise was kept."), "{out}");
    assert!(err.contains("on the same database after"), "{err}");
    assert!(err.contains("the new database tickwheel_demo_"), "{err}");
    kit::report(&out);

    assert_eq!(left(&server), "");
    assert_eq!(std::fs::read_dir(temporary.path()).expect("the directory").count(), 0);
    assert_eq!(tasks(), before, "the tasks of the other server are untouched");
}

#[test]
fn interrupted_it_removes_its_database() {
    let Some(server) = own_server() else { return };
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let mut command = tickwheel(&["demo", "--postgres", &server.url()]);
    command.env("TMPDIR", temporary.path()).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("run the demo");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let opened = lines.find(|line| line.contains("/console/"));
    assert!(opened.is_some(), "the shop opens");
    assert!(left(&server).starts_with("tickwheel_demo_"));
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::INT).expect("press Ctrl-C");
    let last = lines.last().expect("a line");
    assert!(last.contains("interrupted; the server and its database are gone"), "{last}");
    assert_eq!(child.wait().expect("its end").code(), Some(1));
    until("the database is gone", || left(&server).is_empty());
}

#[test]
fn a_role_that_may_not_make_databases_is_told() {
    let Some(server) = kit::shared() else { return };
    let database = server.database();
    database.psql("CREATE ROLE no_databases LOGIN");
    let told = fails(&["demo", "--postgres", &database.url_as("no_databases")]);
    assert!(told.contains("failed to make a database on postgres://no_databases@127.0.0.1:"), "{told}");
    assert!(told.contains("permission denied to create database"), "{told}");
    assert!(told.contains("`ALTER ROLE ... CREATEDB` gives it the right"), "{told}");

    let told = fails(&["demo", "--postgres", "postgres://me:canary@127.0.0.1:1/shop"]);
    assert!(told.contains("postgres://me:***@127.0.0.1:1/shop") && !told.contains("canary"), "{told}");
    let told = fails(&["demo", "--postgres", "mysql://me:canary@h/shop"]);
    assert!(told.contains("does not begin with postgres://") && !told.contains("canary"), "{told}");
}
