//! This process among those that share the database: its heartbeats, its commits and reads for all of its shards, and its threads.

pub(crate) mod clock;
pub(crate) mod commit_worker;
pub(crate) mod heartbeats;
pub(crate) mod inbox;
pub(crate) mod key_room;
pub(crate) mod lease_term;
pub(crate) mod mailbox;
pub(crate) mod node;
pub(crate) mod polls;
pub(crate) mod reader;
pub(crate) mod run;
