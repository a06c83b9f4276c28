//! What was asked for.

use super::catalog::{self, Candidate};
use super::workload::Workload;
use crate::count;

/// Arguments of `tickwheel-bench wheel`.
#[derive(clap::Args, Debug)]
pub(crate) struct WheelArguments {
    /// How many timers, such as 1e4 or 250000; more than one size with commas.
    #[arg(long, value_delimiter = ',', value_parser = count::parse, default_value = "1e4,1e6,1e7")]
    pub(crate) n: Vec<u64>,
    /// Only these implementations, with commas or again.
    #[arg(long, value_delimiter = ',', value_parser = parse_name)]
    pub(crate) only: Vec<&'static Candidate>,
    /// Only these workloads.
    #[arg(long, value_delimiter = ',', ignore_case = true)]
    pub(crate) workload: Vec<Workload>,
    /// Rounds; each measures everything once, and the ratios are made inside a round.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
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
    /// How many timers.
    #[arg(long)]
    pub(crate) n: u64,
}

fn parse_name(name: &str) -> Result<&'static Candidate, String> {
    catalog::find(name).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_is_answered_with_those_there_are() {
        assert_eq!(parse_name("wheel").expect("it is there").name, "wheel");
        let error = parse_name("weel").expect_err("a typo");
        assert!(error.contains("\"weel\"") && error.contains("wheel, line, append, slab"), "{error}");
    }
}
