//! Runs commands to their end, and calls servers.

use std::process::Output;

use serde_json::Value;

use crate::program::tickwheel;
use crate::server::Server;

/// The text that a command wrote to stderr.
pub(crate) fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that succeeds.
#[track_caller]
pub(crate) fn succeeds(words: &[&str]) -> Output {
    let output = tickwheel(words).output().expect("run it");
    assert!(output.status.success(), "{words:?}: {}", told(&output));
    output
}

/// Runs a command that fails, and returns its error.
#[track_caller]
pub(crate) fn fails(words: &[&str]) -> String {
    let output = tickwheel(words).output().expect("run it");
    assert_eq!(output.status.code(), Some(1), "{words:?}: {}", told(&output));
    told(&output)
}

/// Calls a server, and returns the status and the first line of the answer.
pub(crate) fn ask(server: &Server, method: &str, path: &str, body: &str) -> (u16, Value) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", server.url));
    let request = request.header("Content-Type", "application/json").body(body.to_owned());
    let mut answer = agent.run(request.expect("a request")).expect("an answer");
    let text = answer.body_mut().read_to_string().expect("text");
    // A batch is answered with a line for each of its operations.
    let line = text.lines().next().unwrap_or_default();
    (answer.status().as_u16(), serde_json::from_str(line).unwrap_or_else(|_| Value::from(text)))
}

/// Calls a server that does it, and returns the answer.
#[track_caller]
pub(crate) fn asked(server: &Server, method: &str, path: &str, body: &str) -> Value {
    let (status, told) = ask(server, method, path, body);
    assert!((200..300).contains(&status), "{method} {path}: {status} {told}");
    told
}
