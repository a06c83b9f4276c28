//! A server of one script.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use tickwheel_api::Problem;
use tickwheel_client::blocking::Client;

/// A request as it arrived.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    headers: Vec<String>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Answers one connection after another with the given answers, and returns the requests.
pub(crate) fn serve(listener: TcpListener, answers: Vec<Vec<u8>>) -> JoinHandle<Vec<Seen>> {
    std::thread::spawn(move || {
        let mut seen = Vec::new();
        let mut answers = answers.into_iter();
        while answers.len() > 0 {
            let (stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream);
            // One connection may carry several calls.
            while let Some(request) = read_request(&mut reader) {
                seen.push(request);
                let answer = answers.next().expect("an answer for each call");
                reader.get_mut().write_all(&answer).expect("write");
                if answer.is_empty() {
                    break;
                }
                if answers.len() == 0 {
                    return seen;
                }
            }
        }
        seen
    })
}

pub(crate) fn read_request(reader: &mut BufReader<impl Read>) -> Option<Seen> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).expect("a line") == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let line = head.remove(0);
    let headers: Vec<String> = head
        .into_iter()
        .map(|line| {
            let (name, value) = line.split_once(": ").expect("a header");
            format!("{}: {value}", name.to_ascii_lowercase())
        })
        .collect();
    let mut seen = Seen { line, headers, body: String::new() };
    let length: usize = seen.header("content-length").map_or(0, |text| text.parse().expect("a number"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    seen.body = String::from_utf8(body).expect("UTF-8");
    Some(seen)
}

pub(crate) fn answer(status: u16, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(crate) fn problem(problem: &Problem) -> Vec<u8> {
    answer(problem.status, std::str::from_utf8(&problem.to_json()).expect("UTF-8"))
}

/// A client and the server it talks to.
pub(crate) fn pair(answers: Vec<Vec<u8>>) -> (Client, JoinHandle<Vec<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    (Client::new(&url).expect("a URL"), serve(listener, answers))
}
