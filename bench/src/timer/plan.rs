//! What was asked for.

use super::catalog::{self, Candidate};
use super::scale::Load;
use super::workload::Workload;

/// Arguments of `tickwheel-bench timer`.
#[derive(clap::Args, Debug)]
pub(crate) struct TimerArguments {
    /// Only these implementations, with commas or again.
    #[arg(long, value_delimiter = ',', value_parser = parse_name)]
    pub(crate) only: Vec<&'static Candidate>,
    /// Only these workloads.
    #[arg(long, value_delimiter = ',', ignore_case = true)]
    pub(crate) workload: Vec<Workload>,
    /// Rounds; each measures everything once, and the ratios are made inside a round.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    #[command(flatten)]
    pub(crate) load: Load,
}

/// What the process of one sample is asked for.
#[derive(clap::Args, Debug)]
pub(crate) struct SampleArguments {
    /// Name of the implementation.
    #[arg(long = "impl")]
    pub(crate) implementation: String,
    /// Name of the workload.
    #[arg(long)]
    pub(crate) workload: Workload,
    #[command(flatten)]
    pub(crate) load: Load,
}

fn parse_name(name: &str) -> Result<&'static Candidate, String> {
    catalog::find(name).map_err(|error| error.to_string())
}
