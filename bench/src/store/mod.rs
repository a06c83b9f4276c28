//! `tickwheel-bench store`: what durable tasks cost, beside the disk and a peer, in one run.
//!
//! - `subject`: the seam behind which every store stands. `record`: the tasks, made from their numbers.
//! - `ours`, `peer`: the stores, one in each file. `writer`: the thread that commits for many clients in the peer.
//! - `clients`: 64 threads that each wait for their answer, and what they wait on.
//! - `raw`: the limit, the disk itself. `place`: the file system of a directory, its size. `written`: bytes written.
//! - `feed`: batches made by a thread of their own; filling.
//! - `batches`, `pairs`, `drain`, `lookup`, `window`, `worst`, `memory`, `life`, `reopen`: the workloads on a store.
//! - `workload`: their names, S1 to S10, and which of them share a filled store. `visit`: those that do, in order.
//! - `catalog`: the implementations by name. `run`: the rounds. `ratios`, `goals`: what is made of the figures.
//! - `plan`: what was asked for.

mod batches;
mod catalog;
mod clients;
mod drain;
mod feed;
mod goals;
mod life;
mod lookup;
mod memory;
mod ours;
mod pairs;
mod peer;
mod place;
mod plan;
mod ratios;
mod raw;
mod record;
mod reopen;
mod run;
mod scene;
mod subject;
mod visit;
mod window;
mod workload;
mod worst;
mod writer;
mod written;

pub(crate) use place::file_system;
pub(crate) use plan::fill_here;
pub(crate) use plan::{FillArguments, SampleArguments, StoreArguments};
pub(crate) use raw::overwrite_and_sync;
pub(crate) use run::{run, sample_here};
