//! The catalog: the tasks that a shard has and where their records are, in memory.

#[expect(
    clippy::module_inception,
    reason = "the folder and the file are the same noun; the folder keeps its parts"
)]
mod catalog;
mod memtable;
mod order;
mod segments;

pub(crate) use catalog::{Catalog, Sought};
pub(crate) use segments::Segment;
