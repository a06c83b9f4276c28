//! The chore `claims`: sentences of the pages that say what was true once and is false today.

mod allowed;
mod check;
mod claim;
mod retired;
mod run;
mod sentences;
mod words;

pub(crate) use run::run;
