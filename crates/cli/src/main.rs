//! The binary `tickwheel`. The program is the library beside this file.

use std::process::ExitCode;

fn main() -> ExitCode {
    tickwheel_cli::run()
}
