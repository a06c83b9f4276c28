//! The findings of the doctor, for people and for programs.

mod report;
mod rows;

pub(crate) use report::Report;
