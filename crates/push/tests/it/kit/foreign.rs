//! Programs in other languages, with the libraries that users of these languages have.

use std::path::Path;
use std::process::{Command, Output};

/// Returns the command that runs a program of Python; `None`: the libraries are not installed.
pub(crate) fn python(program: &str, libraries: &str) -> Option<Command> {
    let mut command = Command::new("python3");
    command.args(["-c", program]);
    if_there(command, Command::new("python3").args(["-c", &format!("import {libraries}")]), || {
        format!("python3 has no {libraries}: pip install them")
    })
}

/// Returns the command that runs a program of Node; `None`: the library is not installed.
pub(crate) fn node(program: &str, library: &str) -> Option<Command> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/push/node_modules");
    let mut command = Command::new("node");
    command.args(["-e", program, "--"]).env("NODE_PATH", &packages);
    let mut probe = Command::new("node");
    probe.args(["-e", &format!("require('{library}')")]).env("NODE_PATH", &packages);
    if_there(command, &mut probe, || {
        format!(
            "node or {library} is not in target/tools/push: npm ci with the files of crates/push/tests/node"
        )
    })
}

#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn if_there(command: Command, probe: &mut Command, missing: impl Fn() -> String) -> Option<Command> {
    let succeeded = |probed: Output| probed.status.success();
    if probe.output().is_ok_and(succeeded) {
        return Some(command);
    }
    assert!(std::env::var_os("TICKWHEEL_REQUIRE_ALL").is_none(), "{}", missing());
    eprintln!("SKIPPED: {}", missing());
    None
}
