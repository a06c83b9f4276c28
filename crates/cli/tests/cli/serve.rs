//! `serve`: its first line, its signals, its lock, its refusals.

use rustix::process::Signal;

use crate::run::run;
use crate::server::Server;

#[test]
fn both_signals_stop_it_gracefully_and_tasks_are_there_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let data = data.to_str().expect("UTF-8");
    for (round, signal) in [Signal::TERM, Signal::INT].into_iter().enumerate() {
        let server = Server::start(&["--data", data, "--listen", "127.0.0.1:0"]);
        let key = format!("order:{round}");
        let put = run(&["put", "close", &key, "--in", "30m", "--server", &server.url]);
        assert_eq!(put.code, 0, "{}", put.err);
        let seen = run(&["ls", "close", "--server", &server.url]);
        assert_eq!(seen.lines().len(), round + 1);
        assert!(server.stop(signal).success(), "a graceful stop is a success");
    }
}

#[test]
fn a_second_server_on_one_directory_refuses() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().to_str().expect("UTF-8");
    let server = Server::start(&["--data", data, "--listen", "127.0.0.1:0"]);
    let second = run(&["serve", "--data", data, "--listen", "127.0.0.1:0"]);
    assert_eq!((second.code, second.out.as_str()), (1, ""), "{}", second.err);
    assert!(second.err.contains(data), "it names the directory: {}", second.err);
    assert!(server.stop(Signal::TERM).success());
}

#[test]
fn a_port_that_is_taken_and_an_address_for_everybody_are_refused() {
    let server = Server::start(&["--memory", "--listen", "127.0.0.1:0"]);
    let taken = run(&["serve", "--memory", "--listen", server.address()]);
    assert_eq!((taken.code, taken.out.as_str()), (1, ""));
    assert!(taken.err.contains(server.address()) && taken.err.contains("another server"), "{}", taken.err);
    let open = run(&["serve", "--memory", "--listen", "0.0.0.0:0"]);
    assert_eq!((open.code, open.out.as_str()), (1, ""));
    assert!(open.err.contains("--insecure"), "{}", open.err);
}

#[test]
fn a_directory_of_a_virtual_clock_is_refused_by_a_normal_server() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().to_str().expect("UTF-8");
    let server = Server::start(&["--data", data, "--listen", "127.0.0.1:0", "--virtual-clock"]);
    assert!(server.stop(Signal::TERM).success());
    let normal = run(&["serve", "--data", data, "--listen", "127.0.0.1:0"]);
    assert_eq!((normal.code, normal.out.as_str()), (1, ""));
    assert!(normal.err.contains("virtual"), "{}", normal.err);
}

/// A kill needs no repair: the next server on the directory has what was acknowledged.
#[test]
fn after_a_kill_tasks_are_there_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().to_str().expect("UTF-8");
    let server = Server::start(&["--data", data, "--listen", "127.0.0.1:0"]);
    assert_eq!(run(&["put", "close", "order:1", "--in", "30m", "--server", &server.url]).code, 0);
    server.kill();
    let server = Server::start(&["--data", data, "--listen", "127.0.0.1:0"]);
    let seen = run(&["get", "close", "order:1", "--server", &server.url]);
    assert_eq!(seen.lines().len(), 1);
}
