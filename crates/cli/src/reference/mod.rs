//! Pages of `docs/reference` that are made from the command line parser. Tests make and compare them.

mod commands;
mod configuration;
mod markdown;
mod option;
mod page;

pub(crate) use configuration::head;
