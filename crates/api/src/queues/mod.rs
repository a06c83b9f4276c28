//! Queues: their settings, their counts and their schedules.

pub(crate) mod queries;
pub(crate) mod queue;
pub(crate) mod schedule;
pub(crate) mod settings;
