//! Rules about our files that no compiler holds.

mod hosts;
mod pages;
mod plain;
mod prose;
mod retired;
mod run;
mod shape;
mod strangers;
mod unused;
mod wall;
mod words;

pub(crate) use run::run;
