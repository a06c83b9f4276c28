//! The service layer between the doors and the queue, shared by all doors.

pub(crate) mod answers;
pub(crate) mod app;
pub(crate) mod backups;
pub(crate) mod caller;
pub(crate) mod drain;
pub(crate) mod jobs;
pub(crate) mod lifecycle;
pub(crate) mod permits;
pub(crate) mod search;
pub(crate) mod subscriptions;
pub(crate) mod supervisor;
pub(crate) mod why;
