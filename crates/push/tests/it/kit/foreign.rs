//! Programs in other languages, with the libraries that users of these languages have.

use std::path::Path;
use std::process::Command;

/// Returns the command that runs a program of Python; `None`: the libraries are not installed.
pub(crate) fn python(program: &str, libraries: &str) -> Option<Command> {
    let mut command = Command::new("python3");
    command.args(["-c", program]);
    let mut probe = Command::new("python3");
    probe.args(["-c", &format!("import {libraries}")]);
    if_there(command, &mut probe, &format!("python3 with {libraries}"), "pip install them")
}

/// Returns the command that runs a program of Node; `None`: the library is not installed.
pub(crate) fn node(program: &str, library: &str) -> Option<Command> {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/push/node_modules");
    let mut command = Command::new("node");
    command.args(["-e", program, "--"]).env("NODE_PATH", &packages);
    let mut probe = Command::new("node");
    probe.args(["-e", &format!("require('{library}')")]).env("NODE_PATH", &packages);
    let advice = "npm ci in target/tools/push, with the files of crates/push/tests/node";
    if_there(command, &mut probe, &format!("node with {library}"), advice)
}

fn if_there(command: Command, probe: &mut Command, what: &str, advice: &str) -> Option<Command> {
    if probe.output().is_ok_and(|probed| probed.status.success()) {
        return Some(command);
    }
    tickwheel_testing::missing(what, advice);
    None
}
