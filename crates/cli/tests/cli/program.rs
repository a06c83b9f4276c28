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
    // With its usual port, only one server could run on this computer.
    command.env("TICKWHEEL_BEANSTALK", "off").args(words).stdin(Stdio::null());
    command
}
