//! The threads of a queue: calls go to them as messages, and answers come back.

pub(crate) mod advance;
pub(crate) mod driver;
pub(crate) mod in_use;
pub(crate) mod mailbox;
mod patience;
pub(crate) mod pending;
pub(crate) mod pin;
mod reply;
mod retry;
pub(crate) mod rounds;
pub(crate) mod shard_thread;
pub(crate) mod watch;
