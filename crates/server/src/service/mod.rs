//! The service layer between the doors and the queue, shared by all doors.

pub(crate) mod admission;
pub(crate) mod answers;
pub(crate) mod app;
pub(crate) mod background;
pub(crate) mod backups;
pub(crate) mod caller;
pub(crate) mod drain;
pub(crate) mod health;
pub(crate) mod jobs;
mod known_queues;
pub(crate) mod lifecycle;
pub(crate) mod observed;
mod part;
pub(crate) mod permits;
pub(crate) mod reads;
pub(crate) mod search;
pub(crate) mod subscriptions;
pub(crate) mod supervisor;
pub(crate) mod why;
