//! Rules about our files that no compiler holds.

mod hosts;
mod pages;
mod run;
mod shape;
mod strangers;

pub(crate) use run::run;
