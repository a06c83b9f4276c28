//! Export of spans to a collector.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

use rustix::process::Signal;
use tickwheel_api::{LeaseBody, PutBody, PutQuery, TraceContext};
use tickwheel_client::blocking::Client;

use crate::server::Server;

/// A collector that takes posts until a connection without data comes. Returns all posts.
fn collector() -> (String, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("it listens"));
    let taken = thread::spawn(move || {
        let mut all = Vec::new();
        loop {
            let (socket, _) = listener.accept().expect("a connection");
            let mut socket = BufReader::new(socket);
            let mut length = 0;
            let mut head = String::new();
            while head.lines().last() != Some("") {
                if socket.read_line(&mut head).expect("a head") == 0 {
                    return all;
                }
                let last = head.lines().last().unwrap_or_default().to_ascii_lowercase();
                if let Some(bytes) = last.strip_prefix("content-length:") {
                    length = bytes.trim().parse().expect("a number");
                }
            }
            assert!(head.starts_with("POST /v1/traces "), "{head}");
            let mut body = vec![0; length];
            socket.read_exact(&mut body).expect("a body");
            all.extend(body);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            socket.get_mut().write_all(answer).expect("written");
        }
    });
    (url, taken)
}

fn has(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

#[test]
fn the_spans_of_a_request_and_of_a_delivery_arrive() {
    let (url, taken) = collector();
    let server = Server::start(&["--memory", "--listen", "127.0.0.1:0", "--otlp-endpoint", &url]);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let trace = TraceContext::of_headers(parent, None).expect("a trace");
    let client = Client::new(&server.url).expect("a URL");
    let traced = client.clone().with_trace(trace);
    traced.put("close", "order:1", &PutBody::default(), PutQuery::default(), None).expect("taken");
    assert_eq!(client.lease("close", &LeaseBody::default()).expect("leased").len(), 1);
    assert!(server.stop(Signal::TERM).success());
    // No more spans are posted. A connection without data ends the collector.
    drop(std::net::TcpStream::connect(url.strip_prefix("http://").expect("its own")).expect("it listens"));
    let all = taken.join().expect("no panic");
    for word in ["tickwheel", "PUT /v1/queues/{q}/tasks/{key}", "deliver close", "POST /v1/queues/{q}/lease"]
    {
        assert!(has(&all, word.as_bytes()), "{word} is not in what was sent");
    }
    let number = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes();
    assert_eq!(
        all.windows(16).filter(|window| *window == number).count(),
        2,
        "the put's trace, and the link to it"
    );
    assert!(!has(&all, b"order:1"), "no key is told");
}
