//! Pages of a server for which the client has no call.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The status and the body of a page.
pub(crate) fn page(url: &str, path: &str) -> (u16, String) {
    let address = url.strip_prefix("http://").expect("a server's URL");
    let mut stream = TcpStream::connect(address).expect("connect");
    stream.set_read_timeout(Some(tickwheel_testing::HANG_TIME)).expect("set a time limit");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").expect("ask");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read the answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

/// `/readyz`: its status and its body.
pub(crate) fn ready(url: &str) -> (u16, Value) {
    let (status, body) = page(url, "/readyz");
    (status, serde_json::from_str(&body).expect("JSON"))
}

/// Polls until there is a result. Panics if the test hangs.
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let limit = tickwheel_testing::HANG_TIME;
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < limit, "waited {limit:?} for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
