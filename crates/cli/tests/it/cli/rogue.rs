//! A rogue server whose answers have terminal escapes: none of them reaches the terminal of its callers unescaped.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::cli::run::{Ran, run};
use crate::server::Server;

/// A harmless text. The rogue replaces it by [`ESCAPES`] in each answer. Both have the same length (bytes).
const MARKER: &str = "marker-of-what-a-rogue-replaces-by-evil";
/// As JSON escapes: a clear screen, a mark that changes the direction, a C1 control, DEL, a character without
/// width, and a byte order mark.
const ESCAPES: &str = "\\u001b[2J\\u202e\\u009b\\u007f\\u200b\\ufeff";
const EVIL: &str = "\u{1b}[2J\u{202e}\u{9b}\u{7f}\u{200b}\u{feff}";

/// A text with the form of a token.
const TOKEN: &str = "AAAAAAAAAAIAAAABAAAAAQ5tzN2gA-4h";

/// Starts a rogue in front of a real server. It ends with the test's process.
fn rogue(server: &Server) -> String {
    assert_eq!(MARKER.len(), ESCAPES.len());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let real = server.address().to_owned();
    std::thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            let real = real.clone();
            // A caller may leave early; the rogue goes on.
            std::thread::spawn(move || answer(caller, &real).ok());
        }
    });
    url
}

/// Passes one request on, and its answer back with the escapes in it.
fn answer(mut caller: TcpStream, real: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(caller.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut server = TcpStream::connect(real)?;
    server.write_all(format!("{head}connection: close\r\n\r\n").as_bytes())?;
    server.write_all(&body)?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer)?;
    caller.write_all(String::from_utf8_lossy(&answer).replace(MARKER, ESCAPES).as_bytes())
}

/// Whether a terminal would not show the character as itself. This second implementation does not depend on the
/// program's.
fn is_evil(c: char) -> bool {
    let code = u32::from(c);
    (code < 0x20 && c != '\n')
        || (0x7f..0xa0).contains(&code)
        || [0x61c, 0xfeff].contains(&code)
        || (0x200b..=0x200f).contains(&code)
        || (0x202a..=0x202e).contains(&code)
        || (0x2060..=0x206f).contains(&code)
}

#[track_caller]
fn harmless(words: &[&str], ran: &Ran) {
    for (name, text) in [("stdout", &ran.out), ("stderr", &ran.err)] {
        assert!(!text.contains(is_evil), "{words:?} printed to {name}: {:?}", text);
    }
}

/// Runs a command against the rogue, as a table and as JSON.
struct Caller {
    url: String,
    shown: usize,
}

impl Caller {
    #[track_caller]
    fn both(&mut self, words: &[&str]) -> [Ran; 2] {
        ["table", "json"].map(|form| {
            let words = [words, &["-o", form, "--server", &self.url]].concat();
            let ran = run(&words);
            harmless(&words, &ran);
            let said = format!("{}{}", ran.out, ran.err);
            self.shown += usize::from(said.contains("[2J"));
            ran
        })
    }
}

/// Whether a string in the value has exactly the escapes.
fn has_evil(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(EVIL),
        Value::Array(values) => values.iter().any(has_evil),
        Value::Object(members) => members.iter().any(|(name, value)| name.contains(EVIL) || has_evil(value)),
        _ => false,
    }
}

#[test]
fn nothing_of_a_rogue_server_drives_a_terminal() {
    let server = Server::start(&["--memory", "--listen", "127.0.0.1:0", "--virtual-clock"]);
    let payload = format!("{{\"{MARKER}\":\"{MARKER}\"}}");
    let mut caller = Caller { url: rogue(&server), shown: 0 };
    let real = |words: &[&str]| {
        let ran = run(&[words, &["--server", &server.url]].concat());
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        ran
    };
    // Tasks and settings that the real server's answers are made of.
    for key in [MARKER, "a", "b", "c"] {
        real(&["put", MARKER, key, "--in", "1h", "--payload", &payload, "--tag", MARKER, "--group", MARKER]);
    }
    real(&["put", MARKER, "ready", "--in", "0s", "--payload", &payload]);
    real(&["put", MARKER, "second", "--in", "0s", "--payload", &payload]);
    real(&["schedules", "put", MARKER, MARKER, "--every", "1h", "--payload", &payload]);
    let commands: &[&[&str]] = &[
        &["get", MARKER, MARKER],
        &["ls", MARKER],
        &["ls"],
        &["queues"],
        &["queues", "show", MARKER],
        &["queues", "set", MARKER, "--max-backlog", "100"],
        &["put", MARKER, MARKER, "--in", "2h", "--payload", &payload],
        &["put", MARKER, MARKER, "--in", "2h", "--mode", "create"],
        &["schedules", "ls", MARKER],
        &["schedules", "ls"],
        &["schedules", "show", MARKER, MARKER],
        &["lease", MARKER],
        &["cancel", MARKER, "a"],
        &["cancel", MARKER, "--all"],
        &["jobs"],
        &["redrive", MARKER, "--all"],
        &["forecast", MARKER],
        &["get", MARKER, "nobody"],
        &["schedules", "show", MARKER, "nobody"],
        &["schedules", "delete", MARKER, "nobody"],
        &["ack", MARKER, MARKER],
        &["nack", MARKER, MARKER],
        &["extend", MARKER, MARKER],
    ];
    for words in commands {
        caller.both(words);
    }
    assert!(caller.shown >= 24, "the evil was in {} outputs only, so it was hardly looked for", caller.shown);
    // A program that reads JSON gets the text that the server sent.
    real(&["put", MARKER, MARKER, "--in", "1h", "--payload", &payload]);
    let [_, json] = caller.both(&["get", MARKER, MARKER]);
    assert_eq!(json.code, 0, "{}", json.err);
    let task: Value = serde_json::from_str(&json.out).expect("JSON");
    assert!(task["queue"] == EVIL && has_evil(&task["payload"]), "{task}");
    let words = ["top", "--times", "1", "--every", "100ms", "--server", &caller.url];
    let top = run(&words);
    harmless(&words, &top);
    assert!(has_evil(&serde_json::from_str(&top.out).expect("JSON")), "{}", top.out);
}

/// Each command gets a problem with escapes in every member, and answers that are no HTTP or no JSON.
#[test]
fn no_problem_of_a_rogue_server_drives_a_terminal() {
    let members = ["type", "title", "detail", "hint"].map(|name| format!("\"{name}\":\"{ESCAPES}\""));
    let problem = format!("{{{},\"status\":400}}", members.join(","));
    let answers = [
        format!(
            "HTTP/1.1 400 {EVIL}\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\n\r\n{problem}",
            problem.len()
        ),
        format!(
            "HTTP/1.1 400 Bad\r\ncontent-type: text/{MARKER}\r\ncontent-length: {}\r\n\r\n{EVIL}",
            EVIL.len()
        ),
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{EVIL}",
            EVIL.len()
        ),
        format!("{EVIL}\r\n\r\n"),
    ];
    for answer in answers {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let text = answer.clone();
        std::thread::spawn(move || {
            for mut caller in listener.incoming().flatten() {
                let text = text.clone();
                std::thread::spawn(move || {
                    // The request is read first. Otherwise its caller would see a broken connection and no answer.
                    let mut request = [0; 65_536];
                    let _read = caller.read(&mut request);
                    let _gone = caller.write_all(text.as_bytes());
                });
            }
        });
        let commands: &[&[&str]] = &[
            &["put", "q", "k", "--in", "1h"],
            &["get", "q", "k"],
            &["ls"],
            &["ls", "q"],
            &["cancel", "q", "k"],
            &["cancel", "q", "--all"],
            &["jobs"],
            &["jobs", "show", "1"],
            &["backup"],
            &["backup", "--list"],
            &["backup", "--stop", "1"],
            &["lease", "q"],
            &["ack", "q", TOKEN],
            &["nack", "q", TOKEN],
            &["extend", "q", TOKEN],
            &["redrive", "q", "--all"],
            &["queues"],
            &["queues", "show", "q"],
            &["forecast"],
            &["top", "--times", "1"],
            &["schedules", "ls"],
            &["schedules", "ls", "q"],
            &["schedules", "show", "q", "n"],
            &["patch", "q", "k", "--tag", "t"],
            &["move", "q", "k", "--in", "1h"],
            &["move", "q", "--all", "--by", "1h"],
            &["run", "q", "k"],
            &["purge", "q", "--yes"],
            &["queues", "delete", "q"],
            &["drain"],
            &["resume"],
        ];
        for words in commands {
            let words = [*words, &["--server", &url]].concat();
            let ran = run(&words);
            assert_eq!(ran.code, 1, "{words:?}: {}", ran.err);
            harmless(&words, &ran);
        }
    }
}
