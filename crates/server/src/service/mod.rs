//! The service layer between the doors and the queue, shared by all doors.

pub(crate) mod answers;
pub(crate) mod app;
pub(crate) mod backups;
pub(crate) mod bulk;
pub(crate) mod caller;
pub(crate) mod dead;
pub(crate) mod drain;
pub(crate) mod expected;
mod hand_words;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod lifecycle;
pub(crate) mod limits;
pub(crate) mod lookup;
pub(crate) mod shares;
pub(crate) mod sieve;
pub(crate) mod slots;
pub(crate) mod subscriptions;
pub(crate) mod supervisor;
mod target_words;
pub(crate) mod why;
mod words;
pub(crate) mod work;
