//! [`Sample`]: what one process measured, and how it tells the one that started it.

use std::fmt::Write as _;

use anyhow::{Context, bail};

use super::workload::Workload;

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

/// Figures of one implementation, one workload, one size.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// By name, in the order in which they are shown.
    pub(crate) figures: Vec<(String, f64)>,
    /// Counts that must be the same for every implementation.
    pub(crate) checks: Vec<(String, u64)>,
    /// Operations inside the measured spans.
    pub(crate) measured: u64,
}

impl Sample {
    /// Adds a figure.
    pub(crate) fn figure(&mut self, name: &str, value: f64) {
        self.figures.push((name.to_owned(), value));
    }

    /// Adds a count.
    pub(crate) fn check(&mut self, name: &str, value: u64) {
        self.checks.push((name.to_owned(), value));
    }

    /// A line for each.
    pub(crate) fn lines(&self) -> String {
        let mut lines = format!("measured {}\n", self.measured);
        for (name, value) in &self.figures {
            let _ = writeln!(lines, "figure {name} {value}");
        }
        for (name, value) in &self.checks {
            let _ = writeln!(lines, "check {name} {value}");
        }
        lines
    }

    /// Reads what [`lines`](Self::lines) wrote.
    pub(crate) fn read(lines: &str) -> anyhow::Result<Self> {
        let mut sample = Self::default();
        for line in lines.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["measured", count] => sample.measured = count.parse().context(line.to_owned())?,
                ["figure", name, value] => sample.figure(name, value.parse().context(line.to_owned())?),
                ["check", name, value] => sample.check(name, value.parse().context(line.to_owned())?),
                _ => bail!("a sample has no line such as {line:?}"),
            }
        }
        Ok(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut sample = Sample { measured: 7, ..Sample::default() };
        sample.figure("pair_ns", 8.125);
        sample.check("fired", u64::MAX);
        assert_eq!(Sample::read(&sample.lines()).expect("lines of its own"), sample);
        assert!(Sample::read("figure pair_ns\n").is_err());
        assert!(Sample::read("figure pair_ns x\n").is_err());
    }
}
