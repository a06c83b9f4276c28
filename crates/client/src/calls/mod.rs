//! The calls, grouped by the part of the server that they concern.

mod backups;
mod bulk;
pub(crate) mod exports;
mod queues;
mod schedules;
mod server;
mod targets;
pub(crate) mod tasks;
mod workers;
