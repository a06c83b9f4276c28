//! The rounds. Every store is filled and measured in a process of its own; within a round the implementations come in turn, so
//! that a drift of the machine hits all of them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum as _;

use super::catalog::{self, CATALOG, Candidate};
use super::goals;
use super::memory::RESIDENT;
use super::place::file_system;
use super::plan::{SampleArguments, StoreArguments};
use super::ratios::ratios;
use super::visit::Samples;
use super::workload::{Visit, Workload, visits};
use crate::figures::Figures;
use crate::report::Report;
use crate::sample::{Sample, same_checks};
use crate::scratch::Scratch;
use crate::slope::slope;
use crate::versions;

/// Measures what was asked for.
pub(crate) fn run(arguments: &StoreArguments) -> anyhow::Result<Report> {
    let parent = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = Scratch::new(&parent, &format!("tickwheel-bench-{}", std::process::id()))?;
    eprintln!("{}", versions::describe());
    eprintln!("data on {}", file_system(scratch.path()));
    let candidates: Vec<&'static Candidate> = match &arguments.only[..] {
        [] => CATALOG.iter().collect(),
        only => only.to_vec(),
    };
    let workloads = match &arguments.workload[..] {
        [] => Workload::value_variants(),
        some => some,
    };
    let mut measured = Measured::default();
    for round in 1..=arguments.rounds {
        let wanted: Vec<Workload> =
            workloads.iter().copied().filter(|workload| round <= workload.rounds(arguments.rounds)).collect();
        for group in visits(&wanted) {
            for n in sizes(&group, arguments) {
                let names = group.iter().map(|workload| workload.name()).collect::<Vec<_>>().join(", ");
                eprintln!("round {round} of {}, n = {n}: {names}", arguments.rounds);
                let visit = Visit {
                    workloads: group.clone(),
                    n,
                    span: Duration::from_millis(arguments.ms),
                    dir: scratch.path().to_owned(),
                };
                measure(&candidates, &visit, &mut measured)?;
            }
        }
    }
    measured.add_slopes();
    eprint!("{}", goals::summary(&Figures::read(&measured.report.csv())?));
    Ok(measured.report)
}

/// How many tasks are pending. To the disk alone it is the same.
fn sizes(group: &[Workload], arguments: &StoreArguments) -> Vec<u64> {
    match group {
        [Workload::Disk] => vec![1],
        [workload] if workload.is_memory() => arguments.memory.clone(),
        _ => arguments.pending.clone(),
    }
}

#[derive(Debug, Default)]
struct Measured {
    report: Report,
    /// Resident bytes by implementation and workload, at each size.
    resident: BTreeMap<(&'static str, &'static str), Vec<(u64, f64)>>,
}

/// One visit, by everybody.
fn measure(candidates: &[&'static Candidate], visit: &Visit, measured: &mut Measured) -> anyhow::Result<()> {
    let mut round: Vec<(Workload, Vec<(&'static Candidate, Sample)>)> =
        visit.workloads.iter().map(|workload| (*workload, Vec::new())).collect();
    for candidate in candidates {
        let workloads: Vec<Workload> =
            visit.workloads.iter().copied().filter(|&workload| (candidate.does)(workload)).collect();
        if workloads.is_empty() {
            continue;
        }
        for (workload, sample) in in_a_process(candidate, &Visit { workloads, ..visit.clone() })? {
            let figures: Vec<String> =
                sample.figures.iter().map(|(name, value)| format!("{name} {value:.3}")).collect();
            eprintln!("  {:<6} {:<6} {}", candidate.name, workload.name(), figures.join(", "));
            let of_workload = round.iter_mut().find(|(of, _)| *of == workload);
            of_workload.context("a sample that nobody asked for")?.1.push((candidate, sample));
        }
    }
    for (workload, samples) in &round {
        let named: Vec<(&str, &Sample)> =
            samples.iter().map(|(candidate, sample)| (candidate.name, sample)).collect();
        same_checks(&named)?;
        measured.add(*workload, visit.n, samples);
    }
    Ok(())
}

impl Measured {
    fn add(&mut self, workload: Workload, n: u64, samples: &[(&'static Candidate, Sample)]) {
        for (candidate, sample) in samples {
            for (metric, value) in &sample.figures {
                self.report.add(candidate.name, workload.name(), n, metric, *value);
                if metric == RESIDENT {
                    self.resident
                        .entry((candidate.name, workload.name()))
                        .or_default()
                        .push((n, value * 1e6));
                }
            }
        }
        for (ours, metric, value) in ratios(samples) {
            self.report.add(ours, workload.name(), n, &metric, value);
        }
    }

    /// Bytes for each task, filed under the largest size.
    fn add_slopes(&mut self) {
        for ((implementation, workload), points) in &self.resident {
            let n = points.iter().map(|(n, _)| *n).max().unwrap_or_default();
            if let Some(bytes) = slope(points) {
                eprintln!("{implementation} {workload}: {bytes:.1} resident bytes for each task");
                self.report.add(implementation, workload, n, "slope_bytes", bytes);
            }
        }
    }
}

/// Starts this program again for one visit.
fn in_a_process(candidate: &Candidate, visit: &Visit) -> anyhow::Result<Samples> {
    let names = visit.workloads.iter().map(|workload| workload.name()).collect::<Vec<_>>().join(",");
    let (n, ms) = (visit.n.to_string(), visit.span.as_millis().to_string());
    let dir = path_text(&visit.dir)?;
    let words = [
        "store-sample",
        "--impl",
        candidate.name,
        "--workload",
        &names,
        "--n",
        &n,
        "--ms",
        &ms,
        "--dir",
        dir,
    ];
    let joined = Sample::in_a_process(&words.map(str::to_owned))?.context("a sample without a figure")?;
    parted(&joined, &visit.workloads)
}

fn path_text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| format!("{} is no text", path.display()))
}

/// The other side of [`in_a_process`]: measures here, and returns the lines to print.
pub(crate) fn sample_here(arguments: &SampleArguments) -> anyhow::Result<String> {
    let candidate = catalog::find(&arguments.implementation)?;
    let visit = Visit {
        workloads: arguments.workload.clone(),
        n: arguments.n,
        span: Duration::from_millis(arguments.ms),
        dir: arguments.dir.clone(),
    };
    Ok(joined(&(candidate.sample)(&visit, candidate.name)?).lines())
}

/// One sample of all, in which the workload stands before each name.
fn joined(samples: &Samples) -> Sample {
    let mut joined = Sample::default();
    for (workload, sample) in samples {
        for (name, value) in &sample.figures {
            joined.figure(&format!("{}:{name}", workload.name()), *value);
        }
        for (name, value) in &sample.checks {
            joined.check(&format!("{}:{name}", workload.name()), *value);
        }
        joined.measured += sample.measured;
    }
    joined
}

/// What [`joined`] was made from, but for the counts of operations.
fn parted(joined: &Sample, workloads: &[Workload]) -> anyhow::Result<Samples> {
    let mut samples: Samples = workloads.iter().map(|workload| (*workload, Sample::default())).collect();
    for (name, value) in &joined.figures {
        let (sample, name) = part(&mut samples, name)?;
        sample.figure(name, *value);
    }
    for (name, value) in &joined.checks {
        let (sample, name) = part(&mut samples, name)?;
        sample.check(name, *value);
    }
    Ok(samples)
}

/// Whose that is, and its own name.
fn part<'a, 'b>(samples: &'a mut Samples, name: &'b str) -> anyhow::Result<(&'a mut Sample, &'b str)> {
    let (workload, name) = name.split_once(':').context("a figure of no workload")?;
    let sample = samples.iter_mut().find(|(of, _)| of.name() == workload);
    Ok((&mut sample.with_context(|| format!("nobody asked for {workload}"))?.1, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_went_together_come_apart() {
        let mut first = Sample::default();
        first.figure("ops_s", 1.0);
        first.check("pending", 7);
        let mut second = Sample::default();
        second.figure("ops_s", 2.0);
        let samples = vec![(Workload::S1, first), (Workload::S4, second)];
        let workloads = [Workload::S1, Workload::S4];
        let again = Sample::read(&joined(&samples).lines()).expect("its own lines");
        assert_eq!(parted(&again, &workloads).expect("both were asked for"), samples);
        assert!(parted(&again, &workloads[..1]).is_err());
    }
}
