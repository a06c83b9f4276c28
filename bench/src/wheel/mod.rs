//! `tickwheel-bench wheel`: the wheel, its peers and the limits, on the same work.
//!
//! - `subject`: the seam behind which every implementation stands.
//! - `ours`; `heap`, `tree`, `nexus`, `hashed`, `delay_queue`, `sleep`: the implementations, one in each file. `paused`: the
//!   clock of the last two.
//! - `classic`: the textbook's queues.
//! - `slab`, `limits`: the limits.
//! - `pairs`, `drain`, `rpc`, `sparse`, `reschedule`, `memory`: the workloads, W1 to W6.
//! - `workload`: their names, and which of them runs for whom.
//! - `catalog`: the implementations by name.
//! - `random`, `cpu`: the random sequence, and the clock that counts this thread's work only.
//! - `sample`: what one process measured. `run`: the rounds, each sample in a process of its own. `ratios`: ours against the
//!   others.
//! - `plan`: what was asked for. `versions`: of what.

mod catalog;
mod classic;
mod cpu;
mod delay_queue;
mod drain;
mod hashed;
mod heap;
mod limits;
mod memory;
mod nexus;
mod ours;
mod pairs;
mod paused;
mod plan;
mod random;
mod ratios;
mod reschedule;
mod rpc;
mod run;
mod sample;
mod slab;
mod sleep;
mod sparse;
mod subject;
mod tree;
mod versions;
mod workload;

pub(crate) use plan::WheelArguments;
pub(crate) use run::{run, sample_here};
pub(crate) use sample::SampleArguments;
