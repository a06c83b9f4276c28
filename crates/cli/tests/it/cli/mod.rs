//! The `tickwheel` program from outside: its command line, its output, its exit code.

mod access;
mod arguments;
mod backups;
mod changing;
mod client;
mod config;
mod demo;
mod doctor;
mod environment;
mod log;
mod missing;
mod orders;
mod otlp;
mod packages;
mod portable;
mod replay;
mod rogue;
mod run;
mod salvage;
mod screen;
mod serve;
mod targets;
mod tls;
mod top;
