//! `tickwheel-bench wheel`: the wheel, its peers and the limits, on the same work.
//!
//! - `subject`: the seam behind which every implementation stands.
//! - `ours`; `heap`, `tree`, `nexus`, `hashed`, `delay_queue`, `sleep`: the implementations, one in each file. `paused`: the
//!   clock of the last two.
//! - `classic`: the textbook's queues.
//! - `slab`, `limits`: the limits.
//! - `pairs`, `drain`, `rpc`, `sparse`, `reschedule`, `memory`: the workloads, W1 to W6.
//! - `workload`: their names, and which of them runs for whom. `effort`: how long each is measured.
//! - `catalog`: the implementations by name.
//! - `run`: the rounds, each sample in a process of its own. `ratios`: ours against the others.
//! - `plan`: what was asked for.

mod catalog;
mod classic;
mod delay_queue;
mod drain;
mod effort;
mod hashed;
mod heap;
mod limits;
mod memory;
mod nexus;
mod ours;
mod pairs;
mod paused;
mod plan;
mod ratios;
mod reschedule;
mod rpc;
mod run;
mod slab;
mod sleep;
mod sparse;
mod subject;
mod tree;
mod workload;

pub(crate) use plan::{SampleArguments, WheelArguments};
pub(crate) use run::{run, sample_here};
