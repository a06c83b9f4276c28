//! A shard that this process owns: the state of its store, and the rows that the database keeps of it.

pub(crate) mod batch;
pub mod counts;
pub(crate) mod inbox_row;
pub(crate) mod known_keys;
pub(crate) mod owned;
pub(crate) mod shard_inbox;
pub(crate) mod store;
