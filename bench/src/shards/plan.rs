//! [`ShardsArguments`]: how large, how often, and where.

use std::path::PathBuf;

use crate::count;

/// How large, how often, and where.
#[derive(clap::Args, Debug)]
pub(crate) struct ShardsArguments {
    /// How often each is measured.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) rounds: u64,
    /// Tasks of a measurement.
    #[arg(long, default_value = "2e5", value_parser = count::parse)]
    pub(super) tasks: u64,
    /// Tasks in a batch: put, or leased and acked, at once.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) batch: u64,
    /// Queues of the tasks, half of them on each of two shards. Each has one caller, who has one batch under way.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(2..=256))]
    pub(super) queues: u64,
    /// Where the data is, a folder; by default that of the system for temporary files.
    #[arg(long)]
    pub(super) dir: Option<PathBuf>,
}
