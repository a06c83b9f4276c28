//! The chores `tests`, `slow-tests`, `bare-tests` and `flaky`: the test programs that are built, run one by one.
//!
//! - `program`: which there are.
//! - `event`: a line of the test harness in JSON.
//! - `ran`: one run of a program.
//! - `skip`: the line of a test that does nothing, for a program is missing.
//! - `bare`: all of them where no program is installed.
//! - `counts`: how often each test ran and failed, on which commit.
//! - `flaky`: many runs under load.
//! - `listing`: lists of programs, and of their slowest tests.

mod bare;
mod counts;
mod event;
mod flaky;
mod listing;
mod program;
mod ran;
mod skip;

pub(crate) use bare::run as bare;
pub(crate) use flaky::run as flaky;
pub(crate) use listing::{file, list, slow};
