//! HTTP by hand, so that a test can send requests that no client would send.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use serde_json::Value;

use crate::described;

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    addr: SocketAddr,
    /// The method and target of the last well-formed request.
    asked: Option<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) fn to(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("connected");
        stream.set_read_timeout(Some(tickwheel_testing::HANG_TIME)).expect("set");
        stream.set_write_timeout(Some(tickwheel_testing::HANG_TIME)).expect("set");
        Self { stream: BufReader::new(stream), addr, asked: None }
    }

    /// Sends bytes. An error is ignored, because the server may have closed already, and its answer tells
    /// why.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _sent = self.try_send(bytes);
    }

    /// Sends bytes, and returns whether that worked.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    pub(crate) fn request(&mut self, method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) {
        self.asked = Some((method.to_owned(), target.to_owned()));
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n",
            self.addr,
            body.len()
        );
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.send(&[head.as_bytes(), b"\r\n", body].concat());
    }

    /// Ends the client's stream.
    pub(crate) fn finish(&mut self) {
        self.stream.get_mut().shutdown(Shutdown::Write).expect("open until now");
    }

    /// The next answer.
    pub(crate) fn reply(&mut self) -> Reply {
        let mut reply = self.head();
        let length = reply.header("content-length").map(|length| length.parse().expect("a length"));
        match length {
            _ if self.asked.as_ref().is_some_and(|(method, _)| method == "HEAD") => {}
            Some(length) => {
                reply.body = vec![0; length];
                self.stream.read_exact(&mut reply.body).expect("the whole body");
            }
            None if reply.header("transfer-encoding") == Some("chunked") => {
                while self.chunk(&mut reply.body) {}
            }
            None => {}
        }
        if let Some((method, target)) = &self.asked {
            described::check(method, target, &reply);
        }
        reply
    }

    /// The head of the next answer; the body must still be read.
    pub(crate) fn head(&mut self) -> Reply {
        let line = self.line();
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {line:?}"));
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            if line.is_empty() {
                return Reply { status, headers, body: Vec::new() };
            }
            let (name, value) = line.split_once(':').expect("a header");
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }

    /// Adds the next chunk to `body`; `false` at the last chunk.
    pub(crate) fn chunk(&mut self, body: &mut Vec<u8>) -> bool {
        let length = usize::from_str_radix(&self.line(), 16).expect("a chunk's length");
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("the whole chunk");
        assert_eq!(self.line(), "", "a chunk ends with a line end");
        body.append(&mut bytes);
        length > 0
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line in time");
        line.truncate(line.trim_end_matches(['\r', '\n']).len());
        line
    }

    /// The status of every answer until the server closes.
    pub(crate) fn statuses_until_closed(&mut self) -> Vec<u16> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
        }
        let text = String::from_utf8_lossy(&rest);
        text.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()).collect()
    }

    /// Whether the server has closed by now and sent no byte.
    pub(crate) fn has_ended(&mut self) -> bool {
        let stream = self.stream.get_ref();
        stream.set_nonblocking(true).expect("set");
        let ended = matches!(stream.peek(&mut [0]), Ok(0));
        stream.set_nonblocking(false).expect("set");
        ended
    }

    /// Whether the server closes and sends no further byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).is_ok() && rest.is_empty()
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The lines of an NDJSON body.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// Checks that the answer is a problem of RFC 9457 with this status and slug, and with a hint.
    pub(crate) fn assert_problem(&self, status: u16, slug: &str, context: &str) {
        let text = self.text();
        assert_eq!(self.status, status, "{context}: {text}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{context}: {text}");
        let problem = self.json();
        assert_eq!(problem["status"], status, "{context}: {text}");
        assert_eq!(problem["type"], format!("/problems/{slug}"), "{context}: {text}");
        for member in ["title", "detail", "hint"] {
            assert!(
                problem[member].as_str().is_some_and(|text| !text.is_empty()),
                "{context}: no {member} in {text}"
            );
        }
    }
}
