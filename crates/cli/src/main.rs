//! `tickwheel`: the server and its client in one binary.
//!
//! Data goes to stdout, talk to stderr. Exit code 0: it worked; 1: it did not; 2: the command line makes no sense.

mod cli;
mod commands;
mod demo;
mod doctor;
mod filter;
mod output;
mod remote;
mod replay;
mod values;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli.run() {
        Ok(code) => code,
        Err(error) if output::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}
