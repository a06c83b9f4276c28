//! The result of a salvage, for people and for programs.

mod progress;
mod report;

pub(crate) use progress::Talk;
pub(crate) use report::Report;
