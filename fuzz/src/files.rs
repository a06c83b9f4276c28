//! Files of bytes: what a fuzzer wrote down, shown as scripts and replayed without one.

use std::path::PathBuf;
use std::{env, fs, io};

use crate::case::Case;

/// Prints the cases in the files that the command line names, and replays each.
///
/// # Errors
/// If a file cannot be read.
///
/// # Panics
/// If a queue and the model differ.
#[expect(clippy::print_stdout, reason = "a tool for the terminal")]
pub fn replay_arguments(case: fn(&[u8]) -> Case) -> io::Result<()> {
    for path in env::args_os().skip(1).map(PathBuf::from) {
        let case = case(&fs::read(&path)?);
        println!("{}: {} {:?}", path.display(), case.queue, case.script);
        case.replay();
    }
    Ok(())
}
