//! All rounds of `postgres`.

use std::time::Duration;

use anyhow::Context;

use super::held;
use super::ours::Ours;
use super::peer::Peer;
use super::plan::PostgresArguments;
use super::raw::Raw;
use super::server::Server;
use super::subject::Subject;
use super::{goals, rates, single};
use crate::embedded::{Load, PAYLOAD_BYTES};
use crate::figures::Figures;
use crate::report::Report;

/// As many connections as the lanes of a process on PostgreSQL.
const CONNECTIONS: usize = 4;

/// The implementations, in the order of the first round. `raw-1` and `raw-4`: one connection, and as many as our lanes.
const ALL: [&str; 4] = ["tickwheel", "raw-1", "raw-4", "jobs"];
/// Those that put tasks: `keyless` is tickwheel, and the tasks have no keys, as in a table of jobs.
const PUTTING: [&str; 5] = ["tickwheel", "keyless", "raw-1", "raw-4", "jobs"];

/// Runs all rounds.
pub(crate) fn run(arguments: &PostgresArguments) -> anyhow::Result<Report> {
    let server = match &arguments.url {
        Some(url) => Server::at(url),
        None => Server::start(&arguments.dir.clone().unwrap_or_else(std::env::temp_dir))?,
    };
    eprintln!("{}", server.describe()?);
    let loads = Loads::new(arguments)?;
    let ours = Ours::open(&server, false)?;
    let bytes = ours.bytes_of(&loads.far)?;
    eprintln!(
        "{} queues with a caller each, {} tasks of {PAYLOAD_BYTES} bytes in a batch, {} in a measurement; records of {} and bodies of {} bytes",
        arguments.queues,
        arguments.batch,
        loads.far.tasks(),
        bytes.0,
        bytes.1
    );
    eprintln!(
        "tickwheel: {}, {CONNECTIONS} of them commit; raw-1: 1 connection; raw-4 and jobs: {CONNECTIONS} connections",
        ours.describe()?
    );
    drop(ours);
    let open = |name: &str| -> anyhow::Result<Box<dyn Subject>> {
        Ok(match name {
            "raw-1" => Box::new(Raw::open(&server, 1, bytes)?),
            "raw-4" => Box::new(Raw::open(&server, CONNECTIONS, bytes)?),
            "jobs" => Box::new(Peer::open(&server, CONNECTIONS)?),
            _ => Box::new(Ours::open(&server, name == "keyless")?),
        })
    };
    let mut report = Report::default();
    for round in 0..arguments.rounds {
        if arguments.wants("schedule") {
            let rate = |name: &str| rates::schedule(&*open(name)?, &loads.far);
            of_rates(&mut report, "pg-schedule", arguments.tasks, &of_all(&PUTTING, round, rate)?);
        }
        if arguments.wants("acked") {
            let rate = |name: &str| rates::acked(&*open(name)?, &loads.due);
            of_rates(&mut report, "pg-acked", arguments.tasks, &of_all(&ALL, round, rate)?);
        }
        if arguments.wants("single") {
            let names = ["tickwheel", "keyless", "raw-1", "jobs"];
            let times =
                of_all(&names, round, |name| single::p50_ms(&*open(name)?, &loads.far, arguments.singles))?;
            of_single(&mut report, &times);
        }
        eprintln!("round {} of {}", round + 1, arguments.rounds);
    }
    if arguments.wants("held") {
        for round in 0..arguments.held_rounds {
            of_held(&mut report, arguments, |name, held| held::measured(&*open(name)?, &loads.due, held))?;
            eprintln!("round {} of {} with a snapshot held open", round + 1, arguments.held_rounds);
        }
    }
    eprint!("{}", goals::summary(&Figures::read(&report.csv())?));
    Ok(report)
}

/// The tasks that are due in days, and those that are due at once.
struct Loads {
    far: Load,
    due: Load,
}

impl Loads {
    fn new(arguments: &PostgresArguments) -> anyhow::Result<Self> {
        let PostgresArguments { tasks, batch, queues, .. } = arguments;
        let load = |is_due| Load::new(*tasks, *batch, *queues, is_due);
        Ok(Self { far: load(false)?, due: load(true)? })
    }
}

/// Measures each of the implementations once. The next round begins with the next one, so that none is always behind the same one.
fn of_all(
    names: &[&'static str],
    round: u64,
    measure: impl Fn(&str) -> anyhow::Result<f64>,
) -> anyhow::Result<Vec<(&'static str, f64)>> {
    let first = usize::try_from(round)? % names.len();
    let order = names[first..].iter().chain(&names[..first]);
    order.map(|name| Ok((*name, measure(name).with_context(|| (*name).to_owned())?))).collect()
}

fn of(figures: &[(&str, f64)], wanted: &str) -> f64 {
    figures.iter().find(|(name, _)| *name == wanted).map_or(f64::NAN, |(_, figure)| *figure)
}

/// Adds the rates of a round, and ours beside the others. The floor is what the database can do: the faster of the two raw ones in this
/// round.
fn of_rates(report: &mut Report, workload: &str, tasks: u64, rates: &[(&'static str, f64)]) {
    for (name, rate) in rates {
        report.add(name, workload, tasks, "tasks_s", *rate);
    }
    let floor = f64::max(of(rates, "raw-1"), of(rates, "raw-4"));
    for (name, rate) in [
        ("floor", floor),
        ("raw-1", of(rates, "raw-1")),
        ("raw-4", of(rates, "raw-4")),
        ("jobs", of(rates, "jobs")),
    ] {
        for ours in
            ["tickwheel", "keyless"].into_iter().filter(|ours| rates.iter().any(|(name, _)| name == ours))
        {
            report.add(ours, workload, tasks, &format!("tasks_s/{name}"), of(rates, ours) / rate);
        }
    }
}

fn of_single(report: &mut Report, times: &[(&'static str, f64)]) {
    for (name, ms) in times {
        report.add(name, "pg-single", 1, "p50_ms", *ms);
    }
    for name in ["raw-1", "jobs"] {
        for ours in ["tickwheel", "keyless"] {
            let ratio = of(times, ours) / of(times, name);
            report.add(ours, "pg-single", 1, &format!("p50_ms/{name}"), ratio);
        }
    }
}

fn of_held(
    report: &mut Report,
    arguments: &PostgresArguments,
    measure: impl Fn(&str, Duration) -> anyhow::Result<held::Held>,
) -> anyhow::Result<()> {
    let seconds = arguments.held_seconds;
    for name in &arguments.held_of {
        let held = measure(name, Duration::from_secs(seconds)).with_context(|| name.clone())?;
        report.add(name, "pg-held", seconds, "before_ms", held.before_ms);
        report.add(name, "pg-held", seconds, "cycle_ms", held.held_ms);
        report.add(name, "pg-held", seconds, "cycle_ms/before", held.held_ms / held.before_ms);
        report.add(name, "pg-held", seconds, "cycles", held.cycles as f64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_is_the_faster_raw_one_of_the_round() {
        let mut report = Report::default();
        for (raw_1, raw_4) in [(40.0, 50.0), (100.0, 50.0)] {
            let rates = [("jobs", 5.0), ("tickwheel", 20.0), ("raw-4", raw_4), ("raw-1", raw_1)];
            of_rates(&mut report, "pg-schedule", 7, &rates);
        }
        let figures = Figures::read(&report.csv()).expect("its own lines");
        let floor = figures.get("tickwheel", "pg-schedule", 7, "tasks_s/floor").expect("it was added");
        assert_eq!((floor.min, floor.max), (0.2, 0.4));
        let jobs = figures.get("tickwheel", "pg-schedule", 7, "tasks_s/jobs").expect("it was added");
        assert_eq!(jobs.median, 4.0);
    }

    #[test]
    fn each_round_begins_with_another_one() {
        let first = |round| of_all(&ALL, round, |_| Ok(1.0)).expect("no error")[0].0;
        assert_eq!([0, 1, 2, 3, 4].map(first), ["tickwheel", "raw-1", "raw-4", "jobs", "tickwheel"]);
    }
}
