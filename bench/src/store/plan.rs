//! What was asked for.

use std::path::PathBuf;

use anyhow::Context;

use super::catalog::{self, Candidate};
use super::workload::Workload;
use crate::count;

/// Arguments of `tickwheel-bench store`.
#[derive(clap::Args, Debug)]
pub(crate) struct StoreArguments {
    /// Tasks of 200 B that are pending meanwhile, such as 1e6 or 250000; more than one size with commas.
    #[arg(long, value_delimiter = ',', value_parser = count::parse, default_value = "1e6,1e7")]
    pub(crate) pending: Vec<u64>,
    /// Sizes for resident memory, the slope of which is shown.
    #[arg(long, value_delimiter = ',', value_parser = count::parse, default_value = "1e6,75e5,1e7")]
    pub(crate) memory: Vec<u64>,
    /// Only these implementations, with commas or again.
    #[arg(long, value_delimiter = ',', value_parser = parse_name)]
    pub(crate) only: Vec<&'static Candidate>,
    /// Only these workloads.
    #[arg(long, value_delimiter = ',', ignore_case = true)]
    pub(crate) workload: Vec<Workload>,
    /// Rounds; each measures everything once, and the ratios are made inside a round. Memory and written bytes are measured in the
    /// first one only.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Milliseconds for one measurement, and as many for the disk beside it.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(20..))]
    pub(crate) ms: u64,
    /// Where to make the data: on the disk that is to be measured. Ten million tasks take up to 10 GB there at a time. All
    /// of it is removed. Default: the system's directory for temporary files.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

/// What the process of one sample is asked for.
#[derive(clap::Args, Debug)]
pub(crate) struct SampleArguments {
    /// Name of the implementation.
    #[arg(long = "impl")]
    pub(crate) implementation: String,
    /// Names of workloads that share a store, or of one.
    #[arg(long, value_delimiter = ',')]
    pub(crate) workload: Vec<Workload>,
    /// How many tasks are pending.
    #[arg(long)]
    pub(crate) n: u64,
    /// Milliseconds for one measurement.
    #[arg(long)]
    pub(crate) ms: u64,
    /// Where to make the data.
    #[arg(long)]
    pub(crate) dir: PathBuf,
}

/// What a process that is to be killed is asked for.
#[derive(clap::Args, Debug)]
pub(crate) struct FillArguments {
    /// Name of the implementation.
    #[arg(long = "impl")]
    pub(crate) implementation: String,
    /// How many tasks to put.
    #[arg(long)]
    pub(crate) n: u64,
    /// The directory of the store.
    #[arg(long)]
    pub(crate) data: PathBuf,
}

fn parse_name(name: &str) -> Result<&'static Candidate, String> {
    catalog::find(name).map_err(|error| error.to_string())
}

/// The other process: fills the directory, says so, and commits on and on.
pub(crate) fn fill_here(arguments: &FillArguments) -> anyhow::Result<()> {
    (catalog::find(&arguments.implementation)?.fill.context("it is no store")?)(&arguments.data, arguments.n)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        store: StoreArguments,
    }

    #[test]
    fn sizes_and_names_are_read() {
        let words =
            ["x", "--pending=1000000,1e4", "--only=store,fjall", "--workload", "S1,s8-own", "--ms=100"];
        let asked = Line::try_parse_from(words).expect("good words").store;
        assert_eq!((&asked.pending[..], asked.ms), (&[1_000_000, 10_000][..], 100));
        assert_eq!(asked.only.iter().map(|only| only.name).collect::<Vec<_>>(), ["store", "fjall"]);
        assert_eq!(asked.workload, [Workload::S1, Workload::S8Own]);
        assert_eq!(asked.memory, [1_000_000, 7_500_000, 10_000_000]);
        for bad in ["--pending=0", "--only=rocks", "--workload=s11", "--ms=1", "--rounds=0"] {
            assert!(Line::try_parse_from(["x", bad]).is_err(), "{bad}");
        }
    }
}
