//! A receiver of webhooks on loopback that answers as the test wants.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// A request as the receiver got it.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.as_str())
    }

    /// Whether one of the signatures was made with this secret.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        let secret = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
        let head = format!("{}.{}.", self.header("webhook-id"), self.header("webhook-timestamp"));
        let signed = [head.as_bytes(), &self.body].concat();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let of_version_1 =
            self.header("webhook-signature").split(' ').filter_map(|one| one.strip_prefix("v1,"));
        let mut signatures = of_version_1.map(|one| STANDARD.decode(one).expect("base64"));
        signatures.any(|signature| hmac::verify(&key, &signed, &signature).is_ok())
    }
}

/// See the module.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<VecDeque<&'static str>>>,
}

impl Receiver {
    /// Answers the first requests with these lines (`500 No`), and all others with 204. A request whose line is `hang` gets no answer.
    pub(crate) fn start(answers: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::<Mutex<Vec<_>>>::default();
        let answers = Arc::new(Mutex::new(answers.iter().copied().collect::<VecDeque<_>>()));
        let (seen, plan) = (Arc::clone(&requests), Arc::clone(&answers));
        // The thread ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, plan) = (Arc::clone(&seen), Arc::clone(&plan));
                thread::spawn(move || serve(&stream, &seen, &plan));
            }
        });
        Self { address, requests, answers }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hooks/{{queue}}?k={{key}}", self.address)
    }

    /// Answers the next requests with these lines.
    pub(crate) fn answer(&self, lines: &[&'static str]) {
        self.answers.lock().expect("no panic").extend(lines);
    }

    pub(crate) fn requests(&self) -> Vec<Received> {
        self.requests.lock().expect("no panic").clone()
    }
}

fn serve(stream: &TcpStream, seen: &Mutex<Vec<Received>>, plan: &Mutex<VecDeque<&'static str>>) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader) {
        let answer = plan.lock().expect("no panic").pop_front().unwrap_or("204 No Content");
        seen.lock().expect("no panic").push(request);
        if answer == "hang" {
            // The end of the test's process ends the wait.
            thread::park();
        }
        let length = if answer.starts_with("204") { "" } else { "content-length: 0\r\n" };
        if write!(&*stream, "HTTP/1.1 {answer}\r\n{length}\r\n").is_err() {
            return;
        }
    }
}

fn read(reader: &mut impl BufRead) -> Option<Received> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.remove(0);
    let header =
        |line: &String| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
    let headers: Vec<_> = lines.iter().filter_map(header).collect();
    let mut request = Received { line, headers, body: Vec::new() };
    request.body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}
