//! [`PostgresArguments`]: how large, how often, and where.

use std::path::PathBuf;

use crate::count;

/// How large, how often, and where.
#[derive(clap::Args, Debug)]
pub(crate) struct PostgresArguments {
    /// How often each is measured.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) rounds: u64,
    /// Tasks of a measurement of a rate.
    #[arg(long, default_value = "1e5", value_parser = count::parse)]
    pub(super) tasks: u64,
    /// Tasks in a batch: put, or leased and acked, at once.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(super) batch: u64,
    /// Queues of the tasks. Each has one caller, who has one batch under way.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(super) queues: u64,
    /// Single puts of a measurement.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(10..))]
    pub(super) singles: u64,
    /// How long a snapshot is held open, seconds. The goal is for 600.
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) held_seconds: u64,
    /// How often that is measured.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) held_rounds: u64,
    /// Which implementations are measured with the snapshot. Each takes 1.2 times `--held-seconds`.
    #[arg(long, value_delimiter = ',', value_parser = ["tickwheel", "raw-1", "jobs"], default_value = "tickwheel,raw-1,jobs")]
    pub(super) held_of: Vec<String>,
    /// Measure only these.
    #[arg(long, value_delimiter = ',', value_parser = ["schedule", "acked", "single", "held"])]
    pub(super) only: Vec<String>,
    /// A database of a server that runs already. Each measurement makes a database beside it, and drops it. By default the run starts a
    /// server of its own.
    #[arg(long)]
    pub(super) url: Option<String>,
    /// Where the own server puts its data, a folder; by default that of the system for temporary files.
    #[arg(long)]
    pub(super) dir: Option<PathBuf>,
}

impl PostgresArguments {
    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}
