//! `tickwheel`: the server and its client in one binary.
//!
//! Data goes to stdout, messages to stderr. Exit code 0: success; 1: failure; 2: the command line is not valid.
//! `salvage` has one more, 3: success with losses.
//!
//! This library is the whole program; the binary calls [`run`]. So the package's own tests can ask for the features `brokers`, which a plain
//! build has not: a test depends on the library, and no package can depend on a binary.

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
mod hints;
mod load;
mod log;
mod missing;
mod notify;
mod open_files;
mod otlp;
mod output;
mod portable;
mod printable;
mod push_members;
mod push_tables;
#[cfg(test)]
mod reference;
mod remote;
mod replay;
mod salvage;
mod top;
mod values;

pub use cli::run;
