//! Recovery: reads the latest valid checkpoint, the footers of its segments, and then the log behind it into a catalog.

mod base;
mod chain;
mod found;
#[expect(
    clippy::module_inception,
    reason = "the folder and the file are the same noun; the folder keeps its parts"
)]
mod recovery;
mod replay;
mod segments;

pub(crate) use found::read_all;
pub(crate) use recovery::{Recovered, recover};
pub(crate) use replay::Last;
pub(crate) use segments::{of_kind, read_dead, read_footer, read_listed, read_sections};
