//! `tickwheel-sim`: runs seeds, shows a failing one, replays it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its terminal")]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use clap::Parser;
use tickwheel_sim::rng::Rng;
use tickwheel_sim::{Coverage, Options, Outcome, PANIC, Watch, run};

/// Runs the real engine over the real store in a simulated world and checks every answer against the promises.
///
/// Each seed is run twice; a difference between the two is a failure too. Exit code 1: a seed failed.
#[derive(Parser, Debug)]
#[command(name = "tickwheel-sim")]
struct Arguments {
    /// One seed, decimal or 0x and hexadecimal.
    #[arg(long, value_parser = number, conflicts_with = "seeds")]
    seed: Option<u64>,
    /// A range of seeds, `A..B`; B is not in it.
    #[arg(long, value_parser = range, default_value = "0..200")]
    seeds: (u64, u64),
    /// A file of seeds, one a line; # begins a comment.
    #[arg(long, conflicts_with_all = ["seed", "seeds"])]
    seeds_file: Option<std::path::PathBuf>,
    /// Options to set over those of the seed, as a failure prints them: `keys=3,calls=40`.
    #[arg(long, default_value = "")]
    options: String,
    /// Stop after this step.
    #[arg(long)]
    until_step: Option<u64>,
    /// Print every event.
    #[arg(long)]
    trace: bool,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
    /// Switch a planted bug on and expect it to be found. Takes a build with `--cfg tickwheel_sim`.
    #[arg(long)]
    bug: Option<String>,
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is no number; give one like 17 or 0x5eed"))
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once("..").ok_or("give a range like 0..10000")?;
    let range = (number(from)?, number(to)?);
    if range.0 < range.1 { Ok(range) } else { Err(format!("`{text}` is empty")) }
}

fn main() -> ExitCode {
    // A panic of the product is a finding, reported with its seed; its backtrace comes with the replay.
    if std::env::args().any(|argument| argument == "--bug") {
        std::panic::set_hook(Box::new(|_| {}));
    }
    match work(&Arguments::parse()) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("tickwheel-sim: {why}");
            ExitCode::from(2)
        }
    }
}

fn work(arguments: &Arguments) -> Result<ExitCode, String> {
    if let Some(bug) = &arguments.bug {
        plant(bug)?;
    }
    let seeds: Vec<u64> = match (arguments.seed, &arguments.seeds_file) {
        (Some(seed), _) => vec![seed],
        (None, Some(file)) => read_seeds(file)?,
        (None, None) => (arguments.seeds.0..arguments.seeds.1).collect(),
    };
    options_of(0, &arguments.options)?;
    let begun = Instant::now();
    let (failed, runs, coverage) = run_all(arguments, &seeds);
    let took = begun.elapsed();
    eprintln!("{runs} seeds, each twice, in {:.1} s", took.as_secs_f64());
    println!("{coverage}");
    if let Some((seed, outcome, why)) = &failed {
        report(arguments, *seed, outcome, why);
    }
    Ok(match (&arguments.bug, &failed) {
        (None, None) => {
            println!("{runs} seeds passed");
            ExitCode::SUCCESS
        }
        (None, Some(_)) => ExitCode::FAILURE,
        (Some(bug), Some((seed, outcome, _))) => {
            let promise = outcome.violation.as_ref().map_or("determinism", |violation| violation.promise);
            println!("bug {bug} was found by seed {seed} on {promise}, after {runs} seeds");
            ExitCode::SUCCESS
        }
        (Some(bug), None) => {
            println!("bug {bug} escaped {runs} seeds: a hole in the simulator");
            ExitCode::FAILURE
        }
    })
}

type Failure = (u64, Outcome, String);

/// Runs the seeds in their order on some threads, up to the first that fails.
fn run_all(arguments: &Arguments, seeds: &[u64]) -> (Option<Failure>, u64, Coverage) {
    let next = AtomicU64::new(0);
    let panics = AtomicU64::new(0);
    let found: Mutex<Option<Failure>> = Mutex::new(None);
    let total = Arc::new(Mutex::new((0_u64, Coverage::default())));
    let watch = Watch { trace: arguments.trace, until_step: arguments.until_step };
    let worker = || {
        loop {
            let at = usize::try_from(next.fetch_add(1, Ordering::Relaxed)).unwrap_or(usize::MAX);
            let stop = found.lock().expect("no worker panics while it holds this").is_some();
            let Some(&seed) = seeds.get(at).filter(|_| !stop) else { return };
            let Ok(options) = options_of(seed, &arguments.options) else { return };
            let first = run(seed, &options, watch);
            let second = run(seed, &options, Watch { trace: false, ..watch });
            let why = match &first.violation {
                Some(violation) => Some(format!("{} is broken: {}", violation.promise, violation.what)),
                None if first.trace_hash != second.trace_hash => {
                    Some(format!("two runs differ: {:#x} and {:#x}", first.trace_hash, second.trace_hash))
                }
                None => None,
            };
            let runs = {
                let mut total = total.lock().expect("no worker panics while it holds this");
                total.0 += 1;
                total.1 += first.coverage;
                total.0
            };
            if std::io::stderr().is_terminal() || runs % 1_000 == 0 {
                let end = if std::io::stderr().is_terminal() { "\r" } else { "\n" };
                eprint!("{runs} of {} seeds{end}", seeds.len());
                let _ = std::io::stderr().flush();
            }
            // A planted bug that trips an assertion is found; whether the oracle finds it too is the question here.
            let panicked = first.violation.as_ref().is_some_and(|violation| violation.promise == PANIC);
            if arguments.bug.is_some() && panicked {
                panics.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if let Some(why) = why {
                let mut found = found.lock().expect("no worker panics while it holds this");
                if found.as_ref().is_none_or(|(other, ..)| seed < *other) {
                    *found = Some((seed, first, why));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(worker);
        }
    });
    let panics = panics.into_inner();
    if panics > 0 {
        eprintln!("{panics} seeds tripped an assertion of the product");
    }
    let (runs, coverage) = *total.lock().expect("no worker panics while it holds this");
    (found.into_inner().expect("no worker panics while it holds this"), runs, coverage)
}

fn report(arguments: &Arguments, seed: u64, outcome: &Outcome, why: &str) {
    println!("\nseed {seed} FAILED: {why}");
    println!("at step {}, virtual wall time {} ms", outcome.steps, outcome.wall_ms);
    if let Some(violation) = &outcome.violation {
        println!("the key's story:");
        violation.story.iter().for_each(|line| println!("  {line}"));
    }
    println!("the store's files:");
    outcome.files.iter().for_each(|(name, bytes)| println!("  {name} {bytes}"));
    let Ok(options) = options_of(seed, &arguments.options) else { return };
    let (cfg, bug) = match &arguments.bug {
        Some(bug) => ("RUSTFLAGS='--cfg tickwheel_sim' ", format!(" --bug {bug}")),
        None => ("", String::new()),
    };
    println!("replay it:");
    println!(
        "  {cfg}cargo run --release -p tickwheel-sim -- --seed {seed:#x} --options '{options}' --until-step {} --trace{bug}",
        outcome.steps
    );
}

fn options_of(seed: u64, set: &str) -> Result<Options, String> {
    let mut options = Options::of_seed(&mut Rng::new(seed));
    options.set(set)?;
    Ok(options)
}

fn read_seeds(file: &std::path::Path) -> Result<Vec<u64>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("read {}: {error}", file.display()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty()).map(number).collect()
}

#[cfg(tickwheel_sim)]
fn plant(bug: &str) -> Result<(), String> {
    let known = tickwheel_engine::planted::NAMES.iter().chain(&tickwheel_store::planted::NAMES);
    let known: Vec<&str> = known.copied().collect();
    if !known.contains(&bug) {
        return Err(format!("`{bug}` is no planted bug; there are {}", known.join(", ")));
    }
    tickwheel_engine::planted::select(bug);
    tickwheel_store::planted::select(Some(bug));
    Ok(())
}

#[cfg(not(tickwheel_sim))]
fn plant(bug: &str) -> Result<(), String> {
    Err(format!("this build has no bug `{bug}`; build with RUSTFLAGS='--cfg tickwheel_sim'"))
}
