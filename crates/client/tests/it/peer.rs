//! A server that a test controls by hand, in the test's own runtime.

use tickwheel_client::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server that has not accepted a connection yet.
pub(crate) struct Peer(TcpListener);

impl Peer {
    pub(crate) async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.expect("a free port"))
    }

    pub(crate) fn address(&self) -> String {
        self.0.local_addr().expect("bound").to_string()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&format!("http://{}", self.address())).expect("a URL")
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> Line {
        Line(self.0.accept().await.expect("a connection").0)
    }
}

/// A connection.
pub(crate) struct Line(pub(crate) TcpStream);

impl Line {
    /// The head of the next request, after its body was read, too. `None`: the client has closed the
    /// connection.
    pub(crate) async fn request(&mut self) -> Option<String> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match self.0.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return None,
            }
        }
        let head = String::from_utf8(head).expect("UTF-8").to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        let mut body = vec![0; length.map_or(0, |text| text.parse().expect("a number"))];
        self.0.read_exact(&mut body).await.expect("the body");
        Some(head)
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.expect("the client reads");
    }

    /// Answers with status 200 and this body.
    pub(crate) async fn answer(&mut self, body: &str) {
        self.say(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
    }
}
