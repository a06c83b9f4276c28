//! The chore `translations`: the Chinese pages, held against their English originals.

mod check;
mod page;
mod run;

pub(crate) use check::check;
pub(crate) use run::run;
