//! The rounds. Every sample is measured in a process of its own, so that no memory of one is found warm, torn or paid for by
//! another one; within a round the implementations come in turn, so that a drift of the machine hits all of them.

use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

use super::catalog::{self, CATALOG, Candidate};
use super::plan::WheelArguments;
use super::ratios::{Figure, ratios};
use super::sample::{Sample, SampleArguments};
use super::versions;
use super::workload::{Effort, Workload};
use crate::report::Report;

/// Measures what was asked for.
pub(crate) fn run(arguments: &WheelArguments) -> anyhow::Result<Report> {
    let candidates: Vec<&Candidate> = match &arguments.only[..] {
        [] => CATALOG.iter().collect(),
        only => only.to_vec(),
    };
    let workloads = match &arguments.workload[..] {
        [] => <Workload as clap::ValueEnum>::value_variants(),
        some => some,
    };
    eprintln!("{}", versions::describe());
    let mut report = Report::default();
    for round in 1..=arguments.rounds {
        for &workload in workloads {
            let sizes = workload.sizes(&arguments.n).into_iter();
            for n in sizes.filter(|&n| round <= workload.rounds(n, arguments.rounds)) {
                eprintln!("round {round} of {}, {}, n = {n}", arguments.rounds, workload.name());
                measure(&candidates, workload, n, &mut report)?;
            }
        }
    }
    Ok(report)
}

/// One workload at one size, by everybody.
fn measure(
    candidates: &[&'static Candidate],
    workload: Workload,
    n: u64,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut samples = Vec::new();
    for candidate in candidates {
        let Some(sample) = in_a_process(candidate, workload, n)? else {
            eprintln!("  {:<18} does not do this, or not at this size", candidate.name);
            continue;
        };
        let figures: Vec<String> =
            sample.figures.iter().map(|(name, value)| format!("{name} {value:.1}")).collect();
        eprintln!("  {:<18} {} ({} operations)", candidate.name, figures.join(", "), sample.measured);
        samples.push((*candidate, sample));
    }
    same_checks(&samples)?;
    let mut round = Vec::new();
    for (candidate, sample) in &samples {
        for (metric, value) in &sample.figures {
            report.add(candidate.name, workload.name(), n, metric, *value);
            round.push(Figure { name: candidate.name, role: candidate.role, metric, value: *value });
        }
    }
    for (metric, value) in ratios(&round) {
        report.add("wheel", workload.name(), n, &metric, value);
    }
    Ok(())
}

/// Whoever finished the whole work must have come to the same counts.
fn same_checks(samples: &[(&'static Candidate, Sample)]) -> anyhow::Result<()> {
    let all = samples.iter().flat_map(|(candidate, sample)| {
        sample.checks.iter().map(|(name, value)| (candidate.name, name.as_str(), *value))
    });
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

/// Starts this program again for one sample.
fn in_a_process(candidate: &Candidate, workload: Workload, n: u64) -> anyhow::Result<Option<Sample>> {
    let program = std::env::current_exe().context("find this program")?;
    let output = Command::new(program)
        .args([
            "wheel-sample",
            "--impl",
            candidate.name,
            "--workload",
            workload.name(),
            "--n",
            &n.to_string(),
        ])
        .stderr(Stdio::inherit())
        .output()
        .context("start this program again")?;
    ensure!(output.status.success(), "the sample of {} ended with {}", candidate.name, output.status);
    let lines = String::from_utf8(output.stdout).context("read a sample")?;
    Ok(if lines.is_empty() { None } else { Some(Sample::read(&lines)?) })
}

/// The other side of [`in_a_process`]: measures here, and returns the lines to print.
pub(crate) fn sample_here(arguments: &SampleArguments) -> anyhow::Result<String> {
    let candidate = catalog::find(&arguments.implementation)?;
    let sample = (candidate.sample)(arguments.workload, arguments.n, Effort::Full);
    Ok(sample.map(|sample| sample.lines()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_do_the_same_work() {
        for &workload in <Workload as clap::ValueEnum>::value_variants() {
            let done = CATALOG
                .iter()
                .filter_map(|candidate| Some((candidate, (candidate.sample)(workload, 100, Effort::Smoke)?)));
            let done: Vec<(&Candidate, Sample)> = done.collect();
            assert!(done.len() >= 3, "{workload:?}");
            for (candidate, sample) in &done {
                assert!(!sample.checks.is_empty(), "{} checks nothing in {workload:?}", candidate.name);
                // A hundred timers do not show in the memory of a process.
                let shows =
                    |value: f64| if workload == Workload::W6 { value.is_finite() } else { value > 0.0 };
                let all = sample.figures.iter().all(|(_, value)| shows(*value));
                assert!(all, "{} {sample:?}", candidate.name);
            }
            same_checks(&done).expect("the same counts");
        }
    }

    #[test]
    fn counts_that_differ_are_told_with_both_names() {
        let counted = |value| Sample { checks: vec![("fired".to_owned(), value)], ..Sample::default() };
        let samples = [(&CATALOG[0], counted(7)), (&CATALOG[4], counted(8))];
        let error = same_checks(&samples).expect_err("7 is not 8").to_string();
        assert_eq!(error, "fired of lazy-heap is 8, and of wheel 7");
    }
}
