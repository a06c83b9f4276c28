//! `tickwheel-bench timer`: timers that run, beside their peers and beside what a lock or a bare sleep costs.
//!
//! - `subject`: the seam behind which every implementation stands.
//! - `ours`: ours, in its ways. `sleep`, `task`, `hashed`, `jdk`: the peers, one in each file. `mutex`, `bare`: the limits.
//! - `ring`, `lateness`, `idle`, `flat`: what is measured.
//! - `workload`: its names, and what runs for whom. `scale`: how much of it.
//! - `catalog`: the implementations by name.
//! - `stamps`: when what fired. `spread`: how late that was. `usage`: what the threads of a timer use, and whether they rest.
//! - `run`: the rounds, each sample in a process of its own. `ratios`: ours against the others.
//! - `plan`: what was asked for.

mod bare;
mod catalog;
mod flat;
mod hashed;
mod idle;
mod jdk;
mod lateness;
mod mutex;
mod ours;
mod plan;
mod ratios;
mod ring;
mod run;
mod scale;
mod sleep;
mod spread;
mod stamps;
mod subject;
mod task;
mod usage;
mod workload;

pub(crate) use plan::{SampleArguments, TimerArguments};
pub(crate) use run::{run, sample_here};
#[cfg(test)]
pub(crate) use scale::Load;
