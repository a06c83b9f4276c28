//! Whole runs of benchmarks, so small that their figures mean nothing.

mod postgres;
mod push;
mod run;
mod shards;
mod store;
