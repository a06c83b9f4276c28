//! The rounds. Every sample is measured in a process of its own, so that no thread and no memory of one is left for another;
//! within a round the implementations come in turn, so that a drift of the machine hits all of them.

use super::catalog::{self, CATALOG, Candidate};
use super::plan::{SampleArguments, TimerArguments};
use super::ratios::ratios;
use super::scale::Load;
use super::workload::Workload;
use crate::report::Report;
use crate::sample::{Sample, same_checks};
use crate::versions;

/// Measures what was asked for.
pub(crate) fn run(arguments: &TimerArguments) -> anyhow::Result<Report> {
    let candidates: Vec<&'static Candidate> = match &arguments.only[..] {
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
            let n = workload.n(&arguments.load.scale());
            eprintln!("round {round} of {}, {}, n = {n}", arguments.rounds, workload.name());
            measure(&candidates, workload, arguments.load, &mut report)?;
        }
    }
    Ok(report)
}

/// One workload, by everybody.
fn measure(
    candidates: &[&'static Candidate],
    workload: Workload,
    load: Load,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut round = Vec::new();
    for candidate in candidates {
        let Some(sample) = in_a_process(candidate, workload, load)? else {
            eprintln!("  {:<18} does not do this", candidate.name);
            continue;
        };
        let figures: Vec<String> =
            sample.figures.iter().map(|(name, value)| format!("{name} {value:.3}")).collect();
        eprintln!("  {:<18} {} ({} operations)", candidate.name, figures.join(", "), sample.measured);
        round.push((*candidate, sample));
    }
    same_checks(&named(&round))?;
    let n = workload.n(&load.scale());
    for (candidate, sample) in &round {
        for (metric, value) in &sample.figures {
            report.add(candidate.name, workload.name(), n, metric, *value);
        }
    }
    for (ours, metric, value) in ratios(&round) {
        report.add(ours, workload.name(), n, &metric, value);
    }
    Ok(())
}

fn named<'a>(round: &'a [(&'static Candidate, Sample)]) -> Vec<(&'static str, &'a Sample)> {
    round.iter().map(|(candidate, sample)| (candidate.name, sample)).collect()
}

/// Starts this program again for one sample.
fn in_a_process(candidate: &Candidate, workload: Workload, load: Load) -> anyhow::Result<Option<Sample>> {
    let words = ["timer-sample", "--impl", candidate.name, "--workload", workload.name()];
    let words: Vec<String> = words.map(str::to_owned).into_iter().chain(load.words()).collect();
    Sample::in_a_process(&words)
}

/// The other side of [`in_a_process`]: measures here, and returns the lines to print.
pub(crate) fn sample_here(arguments: &SampleArguments) -> anyhow::Result<String> {
    let candidate = catalog::find(&arguments.implementation)?;
    let sample = (candidate.sample)(arguments.workload, &arguments.load.scale())?;
    Ok(sample.map(|sample| sample.lines()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_do_the_same_work() {
        let scale = Load::QUICK.scale();
        for &workload in <Workload as clap::ValueEnum>::value_variants() {
            let mut round = Vec::new();
            for candidate in &CATALOG {
                // It takes a second to start, and one of its rings is like the other.
                if candidate.name == "jdk-scheduled" && workload != Workload::Contention {
                    continue;
                }
                if let Some(sample) = (candidate.sample)(workload, &scale).expect("a sample") {
                    round.push((candidate, sample));
                }
            }
            assert!(round.len() >= 2, "{workload:?}");
            for (candidate, sample) in &round {
                assert!(!sample.figures.is_empty(), "{} {workload:?}", candidate.name);
                assert!(sample.figures.iter().all(|(_, value)| value.is_finite()), "{sample:?}");
                let early = sample.figures.iter().find(|(name, _)| name == "early");
                assert!(!candidate.ours || early.is_none_or(|(_, count)| *count == 0.0), "{sample:?}");
            }
            same_checks(&named(&round)).expect("the same counts");
        }
    }
}
