//! The HTTP door.
//!
//! ```text
//! socket -> wire (framing, limits) -> door (who asks, by the routes) -> a handler -> translate -> the queue, and back
//! ```

pub(crate) mod access_log;
pub(crate) mod answer;
pub(crate) mod audit;
pub(crate) mod backups;
pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod bulk;
pub(crate) mod call;
pub(crate) mod clock;
pub(crate) mod console;
pub(crate) mod dead;
pub(crate) mod description;
pub(crate) mod door;
pub(crate) mod drain;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod forecast;
pub(crate) mod header;
pub(crate) mod health;
mod holders;
pub(crate) mod import;
pub(crate) mod jobs;
pub(crate) mod leases;
pub(crate) mod lines;
pub(crate) mod metrics;
pub(crate) mod pace;
pub(crate) mod paced_lines;
pub(crate) mod pages;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod problem;
pub(crate) mod queues;
pub(crate) mod routes;
pub(crate) mod rows;
pub(crate) mod schedules;
mod search;
pub(crate) mod story;
mod stream;
pub(crate) mod targets;
mod tasks;
pub(crate) mod whoami;
pub(crate) mod wire;
