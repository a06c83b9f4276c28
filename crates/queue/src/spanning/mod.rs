//! Calls that span several shards, each with one answer.

mod import;
mod lease;
mod pages;
mod sums;

pub(crate) use import::import;
pub(crate) use lease::lease;
pub(crate) use pages::{InTurn, in_turn, queue_page, schedule_page};
pub(crate) use sums::{all, forecast, stats, targets, wheel};
