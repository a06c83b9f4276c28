//! What was asked for.

use super::catalog::{self, Candidate};
use super::workload::Workload;

/// Arguments of `tickwheel-bench wheel`.
#[derive(clap::Args, Debug)]
pub(crate) struct WheelArguments {
    /// How many timers, such as 1e4 or 250000; more than one size with commas.
    #[arg(long, value_delimiter = ',', value_parser = parse_n, default_value = "1e4,1e6,1e7")]
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

/// A whole number, or a digit or two and a power of ten: 1e6, 25e5.
fn parse_n(text: &str) -> Result<u64, String> {
    let (digits, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let number: Option<u64> = digits.replace('_', "").parse().ok();
    let power: Option<u32> = power.parse().ok();
    let n = number.zip(power).and_then(|(number, power)| number.checked_mul(10_u64.checked_pow(power)?));
    match n {
        Some(n) if (1..=N_MAX).contains(&n) => Ok(n),
        Some(n) => Err(format!("{n} timers are too few or too many; from 1 to {N_MAX}")),
        None => Err(format!("{text:?} is no number of timers; write it like 250000 or 1e6")),
    }
}

/// A handle has 32 bits for the place.
const N_MAX: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_both_ways_of_writing() {
        let good = [
            ("1", 1),
            ("250000", 250_000),
            ("1e6", 1_000_000),
            ("25E5", 2_500_000),
            ("1_000", 1_000),
            ("1e0", 1),
        ];
        for (text, n) in good {
            assert_eq!(parse_n(text), Ok(n), "{text}");
        }
        for bad in ["", "e6", "1e", "1.5e6", "-1", "1e-3", "1e6x", "x"] {
            let error = parse_n(bad).expect_err(bad);
            assert!(error.contains("write it like"), "{error}");
        }
        for far in ["0", "0e9", "2e9", "1e19"] {
            assert!(parse_n(far).expect_err(far).contains("too few or too many"), "{far}");
        }
        assert!(parse_n("1e99").is_err());
    }

    #[test]
    fn a_name_that_is_none_is_answered_with_those_there_are() {
        assert_eq!(parse_name("wheel").expect("it is there").name, "wheel");
        let error = parse_name("weel").expect_err("a typo");
        assert!(error.contains("\"weel\"") && error.contains("wheel, line, append, slab"), "{error}");
    }
}
