//! Rules about our files that no compiler holds.

mod example;
mod hosts;
mod pages;
mod run;
mod shape;
mod strangers;
mod unused;

pub(crate) use run::run;
