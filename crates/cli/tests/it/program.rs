//! The `tickwheel` program.

use std::process::{Command, Stdio};

/// The program, without the variables of the test run's environment.
pub(crate) fn tickwheel(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickwheel"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TICKWHEEL_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    // The servers of this run have this number of shards. With more than one, the tests of the files of a directory fail: those of `access`,
    // `doctor` and `salvage`, and the one of `log` about a lock.
    if let Some(shards) = std::env::var_os("TICKWHEEL_TEST_SHARDS") {
        command.env("TICKWHEEL_SHARDS", shards);
    }
    // With its usual port, only one server could run on this computer.
    command.env("TICKWHEEL_BEANSTALK", "off").args(words).stdin(Stdio::null());
    command
}
