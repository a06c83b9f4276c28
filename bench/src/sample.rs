//! [`Sample`]: what one process measured, and how it tells the one that started it.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

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

    /// What this program says when it is started again with these arguments. Nothing if it does not do that.
    pub(crate) fn in_a_process(arguments: &[String]) -> anyhow::Result<Option<Self>> {
        let program = std::env::current_exe().context("find this program")?;
        Self::of(Command::new(program).args(arguments))
    }

    /// What another program says. Its talk goes where ours goes.
    pub(crate) fn of(command: &mut Command) -> anyhow::Result<Option<Self>> {
        let output = command.stderr(Stdio::inherit()).output().context("start the process of a sample")?;
        ensure!(output.status.success(), "{command:?} ended with {}", output.status);
        let lines = String::from_utf8(output.stdout).context("read a sample")?;
        Ok(if lines.is_empty() { None } else { Some(Self::read(&lines)?) })
    }
}

/// Whoever finished the whole work must have come to the same counts.
pub(crate) fn same_checks(samples: &[(&str, &Sample)]) -> anyhow::Result<()> {
    let all = samples
        .iter()
        .flat_map(|(who, sample)| sample.checks.iter().map(|(name, value)| (*who, name.as_str(), *value)));
    let mut first: Vec<(&str, &str, u64)> = Vec::new();
    for (who, name, value) in all {
        match first.iter().find(|(_, known, _)| *known == name) {
            Some((other, _, expected)) => {
                ensure!(value == *expected, "{name} of {who} is {value}, and of {other} {expected}");
            }
            None => first.push((who, name, value)),
        }
    }
    Ok(())
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

    #[test]
    fn counts_that_differ_are_told_with_both_names() {
        let counted = |value| Sample { checks: vec![("fired".to_owned(), value)], ..Sample::default() };
        let (seven, eight) = (counted(7), counted(8));
        same_checks(&[("a", &seven), ("b", &seven), ("c", &Sample::default())]).expect("the same");
        let error =
            same_checks(&[("wheel", &seven), ("lazy-heap", &eight)]).expect_err("7 is not 8").to_string();
        assert_eq!(error, "fired of lazy-heap is 8, and of wheel 7");
    }

    #[test]
    fn a_process_that_failed_or_said_nothing_is_no_sample() {
        assert_eq!(Sample::of(&mut Command::new("true")).expect("it ends well"), None);
        assert!(Sample::of(&mut Command::new("false")).expect_err("it fails").to_string().contains("false"));
    }
}
