//! `tickwheel-bench shards`: two shards beside one, in one process on one disk.
//!
//! - `plan`: what was asked for. `measure`: one queue with its callers. `run`: the rounds. `goals`: the goals.

mod goals;
mod measure;
mod plan;
mod run;

pub(crate) use plan::ShardsArguments;
pub(crate) use run::run;
