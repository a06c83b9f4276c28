//! The tests of what callers send and get, from outside of the crate.

mod answers;
mod export;
mod hostile;
mod lines;
mod requests;
