//! HTTP at a path of the file system.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use tickwheel_server::{Config, ListenAt, StartError, TlsFiles};

use crate::served::{Served, virtual_memory};

fn at(path: &Path) -> Config {
    Config { listen: ListenAt::Unix(path.to_owned()), ..virtual_memory() }
}

/// Sends one request on a new connection, and returns the whole answer.
fn ask(path: &Path, request: &str, host: &str) -> String {
    let mut socket = UnixStream::connect(path).expect("connected");
    socket.set_read_timeout(Some(tickwheel_testing::HANG_TIME)).expect("set");
    let head =
        format!("{request} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn a_path_belongs_to_one_server_and_is_removed_with_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("http");
    // A socket that a killed server left is replaced.
    drop(UnixListener::bind(&path).expect("bound"));
    let served = Served::start(at(&path)).expect("started");
    for host in ["localhost", "tasks.example", "anything:1"] {
        let answer = ask(&path, "GET /v1/queues", host);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{host}: {answer}");
    }
    assert!(ask(&path, "PUT /v1/queues/q/tasks/a", "x").starts_with("HTTP/1.1 201 "));
    let Err(error) = Served::start(at(&path)) else { panic!("two servers at one path") };
    assert!(matches!(error, StartError::Listen { .. }), "{error:?}");
    assert!(error.to_string().contains(&format!("unix:{}", path.display())), "{error}");
    assert!(ask(&path, "GET /healthz", "x").starts_with("HTTP/1.1 200 OK\r\n"), "the first is still there");
    served.stop();
    assert!(!path.exists(), "the next one makes its own");
    std::fs::write(&path, "kept").expect("written");
    assert!(matches!(Served::start(at(&path)), Err(StartError::Listen { .. })));
    assert_eq!(std::fs::read_to_string(&path).expect("read"), "kept");
}

#[test]
fn a_path_needs_no_tokens_and_takes_no_certificate() {
    at(Path::new("/run/http")).check().expect("who may open it gets in");
    let files = TlsFiles { certificates: "cert.pem".into(), key: "key.pem".into() };
    let error = Config { tls: Some(files), ..at(Path::new("/run/http")) }.check().expect_err("no TLS there");
    assert!(error.to_string().contains("at unix:/run/http there is no TLS"), "{error}");
}
