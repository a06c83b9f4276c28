//! `serve`: its first line, its signals, its lock, its refusals.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use rustix::process::Signal;

use crate::cli::run::run;
use crate::server::{Server, tickwheel};
use crate::stores::is_left_out;

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
    if is_left_out("the suites `postgres` have this for a database") {
        return;
    }
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
    if is_left_out("the suites `postgres` have this for a database") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().to_str().expect("UTF-8");
    let server = Server::start(&["--data", data, "--listen", "127.0.0.1:0", "--virtual-clock"]);
    assert!(server.stop(Signal::TERM).success());
    let normal = run(&["serve", "--data", data, "--listen", "127.0.0.1:0"]);
    assert_eq!((normal.code, normal.out.as_str()), (1, ""));
    assert!(normal.err.contains("virtual"), "{}", normal.err);
}

#[test]
fn a_virtual_clock_starts_at_the_given_time_and_a_directory_keeps_a_later_one() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().to_str().expect("UTF-8");
    let start = |at: &str| {
        Server::start(&[
            "--data",
            data,
            "--listen",
            "127.0.0.1:0",
            "--virtual-clock",
            "--virtual-clock-at",
            at,
        ])
    };
    let due_in_an_hour = |server: &Server, key: &str| {
        let put = run(&["put", "close", key, "--in", "1h", "--server", &server.url, "-o", "json"]);
        assert_eq!(put.code, 0, "{}", put.err);
        put.out
    };
    let server = start("2027-03-27T20:00:00Z");
    let put = due_in_an_hour(&server, "order:1");
    assert!(put.contains(r#""due_at":"2027-03-27T21:00:00.000Z""#), "{put}");
    assert!(server.stop(Signal::TERM).success());
    for (at, due_at) in
        [("2027-03-26T00:00:00Z", "2027-03-27T21:00:"), ("2028-01-01T00:00:00Z", "2028-01-01T01:00:")]
    {
        let server = start(at);
        let put = due_in_an_hour(&server, at);
        assert!(put.contains(&format!(r#""due_at":"{due_at}"#)), "{put}");
        assert!(server.stop(Signal::TERM).success());
    }
    let real = run(&["serve", "--memory", "--virtual-clock-at", "2027-03-27T20:00:00Z"]);
    assert_eq!((real.code, real.out.as_str()), (1, ""));
    assert!(real.err.contains("add --virtual-clock"), "{}", real.err);
}

/// A kill needs no repair. The next server on the directory has everything that was acknowledged.
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

/// Sends a request and returns the whole answer, after which the server closes the connection.
fn ask(mut socket: impl Read + Write, host: &str) -> String {
    let head = format!("GET /v1/queues HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_path_of_the_file_system_is_listened_at() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = format!("unix:{}", directory.path().join("http").display());
    let mut child = tickwheel(&["serve", "--memory", "--listen", &place])
        .stdout(Stdio::piped())
        .spawn()
        .expect("start a server");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("read its first line");
    assert_eq!(line, format!("listening {place}\n"));
    let socket = UnixStream::connect(directory.path().join("http")).expect("connected");
    let answer = ask(socket, "anything.example");
    let at_the_path = |words: &[&str]| run(&[words, &["--server", &place]].concat());
    let put = at_the_path(&["put", "close", "order:1", "--in", "0s"]);
    let leased = at_the_path(&["lease", "close", "--wait", "1s"]);
    let by_variable = tickwheel(&["queues"]).env("TICKWHEEL_SERVER", &place).output().expect("run tickwheel");
    let with_roots = at_the_path(&["queues", "--ca-file", "/roots.pem"]);
    child.kill().expect("kill the server");
    child.wait().expect("wait for the server");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!((put.lines().len(), leased.lines().len()), (1, 1), "{} {}", put.err, leased.err);
    let queues = String::from_utf8(by_variable.stdout).expect("UTF-8");
    assert!(by_variable.status.success() && queues.contains("\"close\""), "{queues}");
    assert!(
        with_roots.code == 1 && with_roots.err.contains(&format!("no TLS at {place}")),
        "{}",
        with_roots.err
    );
    // Cases: the socket of a killed server, a file that is no socket, a path without a file, and a path too long for a
    // socket.
    let file = directory.path().join("file");
    std::fs::write(&file, "").expect("written");
    let long = format!("unix:/{}", "x".repeat(200));
    for (server, why) in [
        (
            place.clone(),
            "no server listens at it, or it is no socket; start one with `tickwheel serve --listen unix:",
        ),
        (format!("unix:{}", file.display()), "no server listens at it, or it is no socket; start one"),
        ("unix:/no/such/socket".to_owned(), "there is no such file; start one with"),
        (long, "the path has 201 bytes, which is too long for a socket; listen at a shorter path"),
    ] {
        let refused = run(&["queues", "--server", &server]);
        assert_eq!(refused.code, 1);
        assert!(refused.err.contains(&format!("no server answers at {server}: {why}")), "{}", refused.err);
    }
    let empty = run(&["queues", "--server", "unix:"]);
    assert!(empty.code == 1 && empty.err.contains("its path is empty"), "{}", empty.err);
    for (listen, what) in [("unix:", "the path is empty"), ("localhost:1", "or unix:/run/tickwheel.sock")] {
        let refused = run(&["serve", "--memory", "--listen", listen]);
        assert!(refused.code == 2 && refused.err.contains(what), "{}", refused.err);
    }
}

#[test]
fn names_of_proxies_and_limits_come_from_options_and_from_the_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("tickwheel.toml");
    let text = "memory = true\nallow_host = \"a.example,b.example:1\"\nmax_batches = \"5\"\nmax_connections = \"7\"\n";
    std::fs::write(&file, text).expect("written");
    let path = file.to_str().expect("UTF-8");
    let by_file = ["--config", path, "--listen", "127.0.0.1:0"];
    let by_options =
        ["--memory", "--listen", "127.0.0.1:0", "--allow-host", "a.example", "--allow-host", "b.example:1"];
    for options in [&by_file[..], &by_options[..]] {
        let server = Server::start(options);
        for (host, status) in
            [("a.example", 200), ("a.example:2", 200), ("b.example:1", 200), ("b.example", 421)]
        {
            let answer = ask(TcpStream::connect(server.address()).expect("connected"), host);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{options:?} {host}: {answer}");
        }
        assert!(server.stop(Signal::TERM).success());
    }
    let refused = run(&["serve", "--memory", "--allow-host", "https://a.example"]);
    assert!(refused.code == 1 && refused.err.contains("it is a URL"), "{}", refused.err);
    let refused = run(&["serve", "--memory", "--max-batches", "0"]);
    assert!(refused.code == 2 && refused.err.contains("a number from 1 to 1000000"), "{}", refused.err);
}
