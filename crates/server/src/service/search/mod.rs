//! Searches in queues that read page after page.

pub(crate) mod dead_group;
pub(crate) mod expected;
pub(crate) mod lookup;
pub(crate) mod newest_dead;
pub(crate) mod sieve;
