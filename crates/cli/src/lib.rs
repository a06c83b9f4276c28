//! `tickwheel`: the server and its client in one binary.
//!
//! Data goes to stdout, messages to stderr. Exit code 0: success; 1: failure; 2: the command line is not valid.
//! `salvage` has one more, 3: success with losses.

#[cfg(feature = "bridge")]
mod bridge;
mod cli;
mod commands;
mod config;
mod demo;
mod doctor;
mod environment;
mod faults;
mod figures;
mod filter;
mod load;
mod log;
mod notify;
mod otlp;
mod output;
mod portable;
mod printable;
mod push_lines;
mod push_members;
mod push_tables;
#[cfg(test)]
mod reference;
mod remote;
mod replay;
mod salvage;
mod top;
mod values;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::Cli::read().and_then(cli::Cli::run) {
        Ok(code) => code,
        Err(error) if output::reader_left(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<output::Told>() => ExitCode::FAILURE,
        Err(error) => {
            output::complain(&error);
            ExitCode::FAILURE
        }
    }
}
