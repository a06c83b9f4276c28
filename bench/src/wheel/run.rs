//! The rounds. Every sample is measured in a process of its own, so that no memory of one is found warm, torn or paid for by
//! another one; within a round the implementations come in turn, so that a drift of the machine hits all of them.

use super::catalog::{self, CATALOG, Candidate};
use super::effort::Effort;
use super::plan::{SampleArguments, WheelArguments};
use super::ratios::{Figure, ratios};
use super::workload::Workload;
use crate::report::Report;
use crate::sample::{Sample, same_checks};
use crate::versions;

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
    same_checks(&named(&samples))?;
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

fn named<'a>(samples: &'a [(&'static Candidate, Sample)]) -> Vec<(&'static str, &'a Sample)> {
    samples.iter().map(|(candidate, sample)| (candidate.name, sample)).collect()
}

/// Starts this program again for one sample.
fn in_a_process(candidate: &Candidate, workload: Workload, n: u64) -> anyhow::Result<Option<Sample>> {
    let n = n.to_string();
    let words = ["wheel-sample", "--impl", candidate.name, "--workload", workload.name(), "--n", &n];
    Sample::in_a_process(&words.map(str::to_owned))
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
            let done: Vec<(&'static Candidate, Sample)> = done.collect();
            assert!(done.len() >= 3, "{workload:?}");
            for (candidate, sample) in &done {
                assert!(!sample.checks.is_empty(), "{} checks nothing in {workload:?}", candidate.name);
                // A hundred timers do not show in the memory of a process.
                let shows =
                    |value: f64| if workload == Workload::W6 { value.is_finite() } else { value > 0.0 };
                let all = sample.figures.iter().all(|(_, value)| shows(*value));
                assert!(all, "{} {sample:?}", candidate.name);
            }
            same_checks(&named(&done)).expect("the same counts");
        }
    }
}
