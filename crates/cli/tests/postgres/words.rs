//! Runs commands to their end.

use std::process::Output;

use crate::program::tickwheel;

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
