//! Conversations: the lines that clients send and the answers that they must get, as text.
//!
//! `A> put 0 0 10 2\r\nhi` is sent by client A with CR LF after it, and `A>> ` without. `A< INSERTED 1` is its next
//! answer. `A|` is a further line of figures in the same answer. `A. close` closes the connection, `A. end` closes its
//! sending side, and `A< (closed)` is the end of the answers. `A. waits 1` goes on when 1 client of the server waits for a
//! job: the server may read what another client sends first. `#` begins a remark. A star stands for a value that
//! differs from run to run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

/// Figures that differ from run to run or from server to server.
const VOLATILE: [&str; 20] = [
    "age",
    "time-left",
    "pause-time-left",
    "pid",
    "version",
    "rusage-utime",
    "rusage-stime",
    "uptime",
    "binlog-oldest-index",
    "binlog-current-index",
    "binlog-records-migrated",
    "binlog-records-written",
    "binlog-max-size",
    "hostname",
    "os",
    "platform",
    "total-connections",
    "current-connections",
    "file",
    "cmd-stats",
];

/// A client that sends one command after the other.
pub(crate) struct Client {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn open(address: &str) -> Self {
        let writer = TcpStream::connect(address).expect("connect");
        writer.set_nodelay(true).expect("set up");
        writer.set_read_timeout(Some(tickwheel_testing::HANG_TIME)).expect("set up");
        let reader = BufReader::new(writer.try_clone().expect("another handle"));
        Self { writer, reader }
    }

    /// Sends a command and returns the first line of its answer, without the body of a job or of figures; `None`: the
    /// server is gone.
    pub(crate) fn ask(&mut self, text: &str) -> Option<String> {
        self.writer.write_all(format!("{text}\r\n").as_bytes()).ok()?;
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        let line = line.strip_suffix("\r\n")?.to_owned();
        if line.starts_with("RESERVED ") || line.starts_with("FOUND ") || line.starts_with("OK ") {
            let bytes: usize = line.rsplit(' ').next()?.parse().ok()?;
            self.reader.read_exact(&mut vec![0; bytes + 2]).ok()?;
        }
        Some(line)
    }

    /// The next answer in the form of a conversation.
    fn hear(&mut self, name: &str) -> String {
        let mut line = Vec::new();
        let read = self.reader.read_until(b'\n', &mut line);
        match read {
            Ok(0) => return format!("{name}< (closed)\n"),
            Ok(_) => {}
            Err(error) => return format!("{name}< (nothing: {error})\n"),
        }
        let line = String::from_utf8(line).expect("an answer is text");
        let line = line.strip_suffix("\r\n").expect("an answer ends with CR LF");
        let words: Vec<&str> = line.split(' ').collect();
        let has_body = matches!(words[..], ["RESERVED" | "FOUND", _, _] | ["OK", _]);
        if !has_body {
            return format!("{name}< {line}\n");
        }
        let bytes: usize = words.last().and_then(|bytes| bytes.parse().ok()).expect("a number of bytes");
        let mut body = vec![0; bytes + 2];
        self.reader.read_exact(&mut body).expect("a whole body");
        assert!(body.ends_with(b"\r\n"), "a body ends with CR LF");
        body.truncate(bytes);
        if words[0] != "OK" {
            return format!("{name}< {line} {}\n", escape(&body));
        }
        let text = String::from_utf8(body).expect("figures are text");
        let mut heard = format!("{name}< OK\n");
        let of_server = text.contains("current-connections");
        let mut lines: Vec<&str> =
            text.strip_suffix('\n').expect("figures end with a line end").split('\n').collect();
        if lines.iter().skip(1).all(|line| line.starts_with("- ")) {
            // Beanstalkd lists tubes in the order of their creation. This server lists them by name.
            lines[1..].sort_unstable();
        }
        for line in lines {
            let shown = match line.split_once(": ") {
                Some(("id", _)) if of_server => "id: *".to_owned(),
                Some((key, _)) if VOLATILE.contains(&key) => format!("{key}: *"),
                _ => line.to_owned(),
            };
            writeln!(heard, "{name}| {shown}").expect("memory takes all");
        }
        heard
    }
}

/// Runs a conversation with a server, and writes the actual answers in place of the expected ones.
pub(crate) fn lead(address: &str, script: &str) -> String {
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let mut transcript = String::new();
    for line in script.lines() {
        if line.is_empty() || line.starts_with('#') {
            writeln!(transcript, "{line}").expect("memory takes all");
            continue;
        }
        let ends = line.find(|c: char| !c.is_ascii_alphanumeric()).expect("a name and what it does");
        let (name, rest) = line.split_at(ends);
        let client = clients.entry(name.to_owned()).or_insert_with(|| Client::open(address));
        if rest.starts_with('|') {
            // The answer was read together with the previous line.
            continue;
        }
        if let Some(said) = rest.strip_prefix(">>") {
            client.writer.write_all(&unescape(said.trim_start())).expect("say");
            writeln!(transcript, "{line}").expect("memory takes all");
        } else if let Some(said) = rest.strip_prefix("> ") {
            let bytes = [unescape(said), b"\r\n".to_vec()].concat();
            client.writer.write_all(&bytes).expect("say");
            writeln!(transcript, "{line}").expect("memory takes all");
        } else if rest.starts_with('<') {
            transcript.push_str(&client.hear(name));
        } else {
            writeln!(transcript, "{line}").expect("memory takes all");
            match rest {
                ". close" => drop(clients.remove(name)),
                ". end" => client.writer.shutdown(Shutdown::Write).expect("say no more"),
                other => match other.strip_prefix(". waits ").and_then(|count| count.parse().ok()) {
                    Some(count) => until_wait(address, count),
                    None => panic!("`{other}` is nothing that a client does"),
                },
            }
        }
    }
    transcript
}

/// Asks until this number of clients wait for a job.
fn until_wait(address: &str, count: u64) {
    let (mut client, line, begun) =
        (Client::open(address), format!("X| current-waiting: {count}"), Instant::now());
    loop {
        client.writer.write_all(b"stats\r\n").expect("say");
        if client.hear("X").lines().any(|heard| heard == line) {
            return;
        }
        assert!(begun.elapsed() < tickwheel_testing::HANG_TIME, "not {count} clients wait");
    }
}

fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(byte.into()),
            _ => write!(text, "\\x{byte:02x}").expect("memory takes all"),
        }
    }
    // A long run of one byte is written in short form, as in a command.
    match text.chars().next() {
        Some(first) if text.len() > 100 && text.chars().all(|c| c == first) => {
            format!("\\{{{}*{first}}}", text.len())
        }
        _ => text,
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escaped = &rest[at + 1..];
        let taken = match escaped.as_bytes()[0] {
            b'r' => (b"\r".to_vec(), 1),
            b'n' => (b"\n".to_vec(), 1),
            b'x' => (vec![u8::from_str_radix(&escaped[1..3], 16).expect("two hex digits")], 3),
            b'{' => {
                let ends = escaped.find('}').expect("a run ends");
                let (count, of) = escaped[1..ends].split_once('*').expect("a run is a count and a text");
                (of.repeat(count.parse().expect("a count")).into_bytes(), ends + 1)
            }
            other => (vec![other], 1),
        };
        bytes.extend_from_slice(&taken.0);
        rest = &escaped[taken.1..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
