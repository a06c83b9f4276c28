//! What a shard has and where it is, as memory knows it.

#[expect(
    clippy::module_inception,
    reason = "the folder and the file are the same noun; the folder keeps its parts"
)]
mod catalog;
mod fresh;
mod order;
mod segments;

pub(crate) use catalog::{Catalog, Sought};
pub(crate) use segments::Segment;
