//! All rounds of `beanstalk`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

use super::life;
use super::load::Load;
use super::server::{Kind, Server};
use crate::report::Report;
use crate::sample::Sample;
use crate::scratch::Scratch;

/// How large and how often.
#[derive(clap::Args, Debug)]
pub(crate) struct BeanstalkArguments {
    /// How often each is measured.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Jobs of a round of puts, and half as many cycles.
    #[arg(long, default_value_t = 200_000)]
    jobs: u64,
    /// Jobs of a round of lateness, put within ten seconds.
    #[arg(long, default_value_t = 50_000)]
    late_jobs: u64,
    /// Jobs that wait: for memory three times as many.
    #[arg(long, default_value_t = 1_000_000)]
    pending: u64,
    /// Measure only these, some of `put`, `cycle`, `lateness`, `memory` and `restart`.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// The program `tickwheel`; by default the one that lies beside this.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Where to put data, a folder; by default that of the system for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Beanstalkd that syncs each job is given so many times fewer.
const FEWER_SYNCED: u64 = 20;
/// Jobs of lateness are due so long after their puts, which take ten: the first come while the last are put.
const LATE_AFTER_S: u64 = 12;
/// As many connections put, and as many wait.
const LATE_CONNECTIONS: u64 = 64;
/// Wake-ups are counted for so long.
const IDLE: Duration = Duration::from_secs(20);

/// Runs all rounds.
pub(crate) fn run(arguments: &BeanstalkArguments) -> anyhow::Result<Report> {
    let program = program(arguments.program.clone())?;
    let base = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let mut report = Report::default();
    for round in 0..arguments.rounds {
        let scratch = |kind: Kind| {
            Scratch::new(&base, &format!("tickwheel-bench-{}-{}", kind.name(), std::process::id()))
        };
        // Each has a server without jobs of before, and all come by turns.
        let loaded = |kind: Kind, load: &Load| {
            let dir = scratch(kind)?;
            let server = Server::start(kind, &program, dir.path())?;
            load.run(&program, &server)
        };
        let puts = Load::puts(arguments.jobs);
        let cycles = Load { mode: "cycle", jobs: arguments.jobs / 2, depth: 32, ..puts.clone() };
        let late = Load {
            mode: "lateness",
            jobs: arguments.late_jobs,
            connections: LATE_CONNECTIONS,
            delay_s: LATE_AFTER_S,
            ..puts.clone()
        };
        for load in [&puts, &cycles, &late].into_iter().filter(|load| wanted(load.mode)) {
            let mut samples = Vec::new();
            for kind in [Kind::Tickwheel, Kind::Beanstalkd, Kind::BeanstalkdSync] {
                let fewer = kind == Kind::BeanstalkdSync && load.mode != "lateness";
                let jobs = if fewer { load.jobs / FEWER_SYNCED } else { load.jobs };
                samples.push((kind, loaded(kind, &Load { jobs, ..load.clone() })?));
            }
            add(&mut report, &format!("beanstalk-{}", load.mode), load.jobs, &samples);
        }
        let pending = arguments.pending;
        if wanted("memory") {
            let mut samples = Vec::new();
            for kind in [Kind::Tickwheel, Kind::Beanstalkd] {
                samples.push((kind, life::memory(kind, &program, scratch(kind)?.path(), pending * 3)?));
            }
            add(&mut report, "beanstalk-memory", pending * 3, &samples);
        }
        if wanted("restart") {
            let mut samples = Vec::new();
            for kind in [Kind::Tickwheel, Kind::BeanstalkdLog] {
                samples.push((kind, life::restart(kind, &program, scratch(kind)?.path(), pending, IDLE)?));
            }
            add(&mut report, "beanstalk-restart", pending, &samples);
        }
        eprintln!("round {} of {}", round + 1, arguments.rounds);
    }
    Ok(report)
}

/// Adds the figures of one round, and those of the first by those of each other.
fn add(report: &mut Report, workload: &str, n: u64, samples: &[(Kind, Sample)]) {
    for (kind, sample) in samples {
        for (name, value) in &sample.figures {
            report.add(kind.name(), workload, n, name, *value);
        }
    }
    let Some(((ours, first), others)) = samples.split_first() else { return };
    for (other, beside) in others {
        for ((name, value), (_, of_other)) in first.figures.iter().zip(&beside.figures) {
            if *of_other > 0.0 {
                report.add(ours.name(), workload, n, &format!("{name}/{}", other.name()), value / of_other);
            }
        }
    }
}

fn program(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let beside = || {
        let this = std::env::current_exe().context("find this program")?;
        anyhow::Ok(this.with_file_name("tickwheel"))
    };
    let program = named.map_or_else(beside, Ok)?;
    ensure!(
        program.exists(),
        "{} is not there; cargo build --release -p tickwheel-cli makes it",
        program.display()
    );
    Ok(program)
}
