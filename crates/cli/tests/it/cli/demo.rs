//! `demo`: it keeps its promises, and leaves nothing behind.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::server::tickwheel;

#[test]
fn it_loses_nothing_and_cleans_up() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let output = tickwheel(&["demo"]).env("TMPDIR", temporary.path()).output().expect("run the demo");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let number = |name: &str| -> u64 {
        let line = out
            .lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap_or_else(|| panic!("{name}: {out}"));
        line.trim_start()[name.len()..]
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
            .expect("a number")
    };
    assert!(number("orders placed") > 0 && number("paid in time") > 0 && number("closed  ") > 0, "{out}");
    assert_eq!((number("lost"), number("early"), number("closed though paid")), (0, 0, 0), "{out}");
    assert_eq!(number("kills (SIGKILL)"), 1, "{out}");
    assert!(err.contains("/console/"), "the address for a browser: {err}");
    assert!(err.contains("SIGKILL"), "progress goes to stderr, a line at a time: {err}");
    assert_eq!(fs::read_dir(temporary.path()).expect("the directory").count(), 0, "nothing is left behind");
}

#[test]
fn interrupted_it_cleans_up_too() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let mut command = tickwheel(&["demo"]);
    command.env("TMPDIR", temporary.path()).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("run the demo");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
    let mut opened = String::new();
    stderr.read_line(&mut opened).expect("its first line");
    let address =
        opened.split_whitespace().find(|word| word.starts_with("127.0.0.1:")).expect("where the server is");
    let address = address.trim_end_matches('.');
    assert!(std::net::TcpStream::connect(address).is_ok(), "the server runs: {opened}");
    assert_eq!(fs::read_dir(temporary.path()).expect("the directory").count(), 1);
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::INT).expect("press Ctrl-C");
    let status = child.wait().expect("its end");
    assert_eq!(status.code(), Some(1));
    assert_eq!(fs::read_dir(temporary.path()).expect("the directory").count(), 0, "nothing is left behind");
    assert!(std::net::TcpStream::connect(address).is_err(), "the server is gone");
}

/// The address of the console in a line of the demo.
fn console_in(line: &str) -> String {
    let url = line.split_whitespace().find_map(|word| word.strip_prefix("http://")).expect("an address");
    url.strip_suffix("/console/").expect("the address of the console").to_owned()
}

fn status_of_console(address: &str) -> String {
    let mut connection = std::net::TcpStream::connect(address).expect("the server runs");
    let head = format!(
        "GET /console/ HTTP/1.1\r\nHost: {address}\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    BufReader::new(connection).read_line(&mut answer).expect("an answer");
    answer.trim().to_owned()
}

#[test]
fn watched_the_server_stays_until_a_signal() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let mut command = tickwheel(&["demo", "--watch"]);
    command.env("TMPDIR", temporary.path()).stdin(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("run the demo");
    let mut stderr = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let first = stderr.find(|line| line.contains("/console/")).expect("its address while it runs");
    let address = console_in(&first);
    assert_eq!(status_of_console(&address), "HTTP/1.1 200 OK", "the shop is open");
    let last = stderr.find(|line| line.contains("/console/")).expect("its address after the account");
    assert!(last.contains("Ctrl-C") && console_in(&last) == address, "{last}");
    assert_eq!(status_of_console(&address), "HTTP/1.1 200 OK", "the account is given");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::TERM).expect("a signal");
    let output = child.wait_with_output().expect("its end");
    let account = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && account.contains("Every promise was kept."), "{account}");
    assert!(std::net::TcpStream::connect(&address).is_err(), "the server is gone");
    assert_eq!(fs::read_dir(temporary.path()).expect("the directory").count(), 0, "nothing is left behind");
}
