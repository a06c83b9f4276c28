//! What the doctor found, for people and for programs.

mod report;
mod rows;

pub(crate) use report::Report;
