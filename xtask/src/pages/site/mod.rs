//! The chore `site`: the documentation as a site, made by mdBook, and its checks.

mod links;
mod page;
mod run;
mod wheels;

pub(crate) use run::run;
