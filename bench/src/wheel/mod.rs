//! `tickwheel-bench wheel`: the wheel, its peers and the limits, on the same work.
//!
//! - `subject`: the seam behind which every implementation stands.
//! - `ours`, `heap`, `nexus`: the implementations, one in each file.
//! - `slab`: the limit.
//! - `pairs`, `drain`, `reschedule`: the workloads.
//! - `workload`: their names, and which of them runs for whom.
//! - `catalog`: the implementations by name.
//! - `random`, `cpu`: the random sequence, and the clock that counts this thread's work only.
//! - `sample`: what one process measured. `run`: the rounds, each sample in a process of its own. `ratios`: ours against the
//!   others.
//! - `plan`: what was asked for.

mod catalog;
mod cpu;
mod drain;
mod heap;
mod nexus;
mod ours;
mod pairs;
mod plan;
mod random;
mod ratios;
mod reschedule;
mod run;
mod sample;
mod slab;
mod subject;
mod workload;

pub(crate) use plan::WheelArguments;
pub(crate) use run::{run, sample_here};
pub(crate) use sample::SampleArguments;
