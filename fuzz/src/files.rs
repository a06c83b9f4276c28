//! Files of bytes: what a fuzzer wrote down, shown as what it means and replayed without one.

use std::fmt::Debug;
use std::path::PathBuf;
use std::{env, fs, io};

/// Prints the cases in the files that the command line names, and replays each.
///
/// # Errors
/// If a file cannot be read.
///
/// # Panics
/// If something does not hold.
#[expect(clippy::print_stdout, reason = "a tool for the terminal")]
pub fn replay_arguments<C: Debug>(case: fn(&[u8]) -> C, replay: fn(&C)) -> io::Result<()> {
    for path in env::args_os().skip(1).map(PathBuf::from) {
        let case = case(&fs::read(&path)?);
        println!("{}: {case:?}", path.display());
        replay(&case);
    }
    Ok(())
}
