//! Calls that span several shards, each with one answer.

mod import;
mod lease;
mod pages;
pub(crate) mod shards;
mod sums;

pub(crate) use pages::{queue_page, schedule_page};
pub(crate) use sums::{forecast, stats, targets, wheel};
