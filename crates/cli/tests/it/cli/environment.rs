//! Variables of the environment: tokens, and names without a meaning.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::server::tickwheel;

const DIGITS: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A server with some variables. Dropping it kills it.
struct Serving {
    child: Child,
    first_line: String,
}

impl Serving {
    fn with(variables: &[(&str, &str)]) -> Self {
        let mut command = tickwheel(&["serve", "--memory", "--listen", "127.0.0.1:0"]);
        command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("start a server");
        let mut first_line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
        stdout.read_line(&mut first_line).expect("read its first line");
        Self { child, first_line }
    }

    /// The URL of the server; empty if it did not start.
    fn url(&self) -> &str {
        self.first_line.trim_end().strip_prefix("listening ").unwrap_or_default()
    }

    /// Stops the server and returns its whole log. One that is killed may take lines along that it has not written yet.
    fn logged(mut self) -> String {
        // A server that has ended by itself keeps its id until it is waited for.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::TERM).expect("send the signal");
        let mut log = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut log).expect("UTF-8");
        log
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

fn ran(words: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = tickwheel(words).envs(variables.iter().copied()).output().expect("run tickwheel");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

/// Regression: `TICKWHEEL_TOKEN=$(openssl rand -hex 32)` was refused, and the hint led to a server that accepted no
/// token.
#[test]
fn sixty_four_hex_digits_in_the_environment_are_a_token() {
    let server = Serving::with(&[("TICKWHEEL_TOKEN", DIGITS)]);
    let with = |token| ran(&["queues", "--server", server.url()], &[("TICKWHEEL_TOKEN", token)]);
    assert_eq!(with(DIGITS).0, Some(0));
    assert_eq!(with(&DIGITS[1..]).0, Some(1));
    let (code, error) = with(&format!("sha256:{DIGITS}"));
    assert!(code == Some(1) && error.contains("a client needs the token itself"), "{error}");
    let log = server.logged();
    assert!(
        !log.contains("TICKWHEEL_TOKEN") && !log.contains(DIGITS),
        "there is nothing to say about it: {log}"
    );
}

#[test]
fn a_hash_in_the_environment_is_marked_and_does_not_let_its_reader_in() {
    // The digits are the output of `printf secret | sha256sum`.
    let digits = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let server = Serving::with(&[("TICKWHEEL_TOKEN", &format!("sha256:{digits}"))]);
    let with = |token| ran(&["queues", "--server", server.url()], &[("TICKWHEEL_TOKEN", token)]).0;
    assert_eq!((with("secret"), with(digits)), (Some(0), Some(1)));
    server.logged();
}

#[test]
fn sixty_four_hex_digits_in_a_file_are_a_token_and_its_owner_is_asked_whether_he_meant_a_hash() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("tokens");
    std::fs::write(&file, format!("# mine\n{DIGITS} rights=read\n")).expect("written");
    let server = Serving::with(&[("TICKWHEEL_TOKEN_FILE", file.to_str().expect("UTF-8"))]);
    assert_eq!(ran(&["queues", "--server", server.url()], &[("TICKWHEEL_TOKEN", DIGITS)]).0, Some(0));
    let log = server.logged();
    assert!(log.contains("[2]") && log.contains("write `sha256:` in front of them"), "{log}");
    assert!(!log.contains(DIGITS), "a token is not logged: {log}");
}

/// Regression: a server that was started from the shell of a client took the client's token for one with all rights.
#[test]
fn a_token_of_the_file_keeps_its_rights_if_it_is_in_the_environment_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("tokens");
    std::fs::write(&file, format!("{DIGITS} rights=produce scope=shop/\n")).expect("written");
    let token = ("TICKWHEEL_TOKEN", DIGITS);
    let server = Serving::with(&[token, ("TICKWHEEL_TOKEN_FILE", file.to_str().expect("UTF-8"))]);
    let put = |queue| ran(&["put", queue, "order:1", "--server", server.url()], &[token]).0;
    assert_eq!((put("shop/close"), put("other")), (Some(0), Some(1)));
    assert_eq!(ran(&["queues", "--server", server.url()], &[token]).0, Some(1));
    std::fs::write(&file, "another-token-of-the-file-0123456789\n").expect("written");
    let gone =
        || ran(&["put", "shop/close", "order:2", "--retries", "0", "--server", server.url()], &[token]);
    let deadline = Instant::now() + tickwheel_testing::HANG_TIME;
    while gone().0 == Some(0) {
        assert!(Instant::now() < deadline, "the file is read again");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(gone().1.contains("token"), "it left the file: {}", gone().1);
    assert!(!server.logged().contains("are not in the token file"));
    // A token that the file has not is valid, and the log has its name.
    let other = [("TICKWHEEL_TOKEN", &DIGITS[1..]), ("TICKWHEEL_TOKEN_FILE", file.to_str().expect("UTF-8"))];
    let server = Serving::with(&other);
    assert_eq!(ran(&["queues", "--server", server.url()], &other[..1]).0, Some(0));
    let log = server.logged();
    assert!(log.contains(r#"["TICKWHEEL_TOKEN"]"#) && log.contains("are not in the token file"), "{log}");
}

#[test]
fn a_variable_that_means_nothing_is_named_at_the_start() {
    let server = Serving::with(&[
        ("TICKWHEEL_LISTN", "0.0.0.0:1"),
        ("TICKWHEEL_PORT", "tcp://127.0.0.1:8463"),
        ("TICKWHEEL_SERVICE_HOST", "127.0.0.1"),
        ("TICKWHEEL_REQUIRE_ALL", "1"),
    ]);
    let log = server.logged();
    assert_eq!(log.matches("means nothing").count(), 1, "{log}");
    assert!(log.contains("TICKWHEEL_LISTN") && log.contains("the nearest name is TICKWHEEL_LISTEN"), "{log}");
}

#[test]
fn a_server_that_would_be_open_by_a_slip_of_the_pen_does_not_start() {
    for (name, nearest) in
        [("TICKWHEEL_TOKENS", "TICKWHEEL_TOKEN"), ("TICKWHEEL_TLS_CERTT", "TICKWHEEL_TLS_CERT")]
    {
        let server = Serving::with(&[(name, "canary")]);
        assert_eq!(server.first_line, "", "it started");
        let error = server.logged();
        assert!(error.contains(name), "{error}");
        assert!(error.contains(&format!("({nearest} is the nearest name)")), "{error}");
        assert!(!error.contains("canary"), "its value may be a secret: {error}");
    }
}

#[test]
fn a_client_names_what_means_nothing_and_goes_on() {
    let (code, error) = ran(&["token"], &[("TICKWHEEL_SERVR", "http://a"), ("TICKWHEEL_TOKENS", "canary")]);
    assert_eq!(code, Some(0), "{error}");
    let warnings: Vec<&str> = error.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert!(warnings[0].contains("TICKWHEEL_SERVR") && warnings[0].ends_with("TICKWHEEL_SERVER"), "{error}");
    assert!(warnings[1].contains("TICKWHEEL_TOKENS") && !error.contains("canary"), "{error}");
}
