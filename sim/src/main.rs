//! `tickwheel-sim`: runs seeds, shows a failing one, makes it smaller, replays it.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to its terminal")]

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::Parser;
use tickwheel_sim::bugs::{self, Bug, Enough, Sought};
use tickwheel_sim::campaign::{Campaign, Failure, Verdict, options_of};
use tickwheel_sim::cluster;
use tickwheel_sim::cluster::search::Search;
use tickwheel_sim::database::Wrong;
use tickwheel_sim::report::Report;
use tickwheel_sim::shrink::shrink;
use tickwheel_sim::totals::{self, Line};
use tickwheel_sim::{Watch, exhaustive, nth};

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
    seeds_file: Option<PathBuf>,
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
    /// Add a line to this file for a range that passed: commit, seeds, operations, faults. Ranges of one commit add up.
    #[arg(long)]
    totals: Option<PathBuf>,
    /// Print the sums over a totals file, for each commit, and end.
    #[arg(long)]
    sum: Option<PathBuf>,
    /// Report on stderr after each `progress` seeds.
    #[arg(long, default_value_t = 1_000)]
    progress: u64,
    /// Do not make a failure smaller.
    #[arg(long)]
    no_shrink: bool,
    /// Go on after a failure, and print one line for each.
    #[arg(long)]
    keep_going: bool,
    /// Switch a planted bug on and expect it to be found on the promise it breaks. Takes a build from the copy that `cargo xtask plant` makes, see `scripts/sim bugs`.
    #[arg(long)]
    bug: Option<String>,
    /// With `--bug`: stop after this number of seeds that fail.
    #[arg(long, default_value_t = bugs::FAILURES)]
    failures: usize,
    /// Instead of one server above a disk: several nodes above one database.
    #[arg(long, conflicts_with_all = ["options", "until_step", "totals", "exhaustive", "fail_nth"])]
    cluster: bool,
    /// Print the names of the planted bugs that are statements, which every build has, and end. Those that seeds seldom find are left out.
    #[arg(long)]
    statements: bool,
    /// Instead of seeds: all sequences of this number of operations, with a crash at every call of the disk.
    #[arg(long, conflicts_with_all = ["seed", "seeds", "seeds_file"])]
    exhaustive: Option<usize>,
    /// Instead of seeds: for each kind of call of the disk, lets the 1st, 2nd, ... fail, until a run passes without a
    /// fault.
    #[arg(long, conflicts_with_all = ["seed", "seeds", "seeds_file", "exhaustive"])]
    fail_nth: bool,
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
    // With `--bug`, panics of the product are expected and reported with their seed, so their messages are not printed.
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
    if let Some(file) = &arguments.sum {
        let text =
            std::fs::read_to_string(file).map_err(|error| format!("read {}: {error}", file.display()))?;
        print!("{}", totals::sums(&text)?);
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.statements {
        let names =
            bugs::STATEMENTS.iter().map(|bug| bug.name).filter(|name| !bugs::SELDOM_FOUND.contains(name));
        names.for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let bug = arguments.bug.as_deref().map(bugs::find).transpose()?;
    bug.map_or(Ok(()), bugs::plant)?;
    if let Some(operations) = arguments.exhaustive {
        return Ok(whole(exhaustive::all(operations, |line| eprintln!("{line}"))));
    }
    if arguments.fail_nth {
        return Ok(whole(nth::all(|line| eprintln!("{line}"))));
    }
    match bug.map(|bug| bug.sought) {
        Some(Sought::Statement(wrong)) => run_cluster(arguments, bug, wrong),
        Some(Sought::Cluster) => run_cluster(arguments, bug, Wrong::Nothing),
        None if arguments.cluster => run_cluster(arguments, bug, Wrong::Nothing),
        Some(Sought::OnDisk) | None => run_seeds(arguments, bug),
    }
}

/// Prints the result of a complete search, and returns the exit code.
fn whole(came: Result<String, String>) -> ExitCode {
    match came {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(said) => {
            println!("FAILED: {said}");
            ExitCode::FAILURE
        }
    }
}

fn seeds_of(arguments: &Arguments) -> Result<Vec<u64>, String> {
    match (arguments.seed, &arguments.seeds_file) {
        (Some(seed), _) => Ok(vec![seed]),
        (None, Some(file)) => read_seeds(file),
        (None, None) => Ok((arguments.seeds.0..arguments.seeds.1).collect()),
    }
}

fn enough(arguments: &Arguments, bug: Option<Bug>) -> Enough {
    let failures = match bug {
        _ if arguments.keep_going => usize::MAX,
        Some(_) => arguments.failures,
        None => 1,
    };
    Enough { failures, bug }
}

/// Runs seeds of several nodes above one database.
fn run_cluster(arguments: &Arguments, bug: Option<Bug>, wrong: Wrong) -> Result<ExitCode, String> {
    let seeds = seeds_of(arguments)?;
    if let (true, [seed]) = (arguments.trace, &seeds[..]) {
        let outcome = cluster::run(*seed, wrong, true);
        println!("{outcome:#?}");
        return Ok(if outcome.violation.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let all = seeds.len();
    let search = Search {
        seeds,
        wrong,
        jobs: arguments.jobs,
        twice: bug.is_none(),
        past_panics: bug.is_some(),
        enough: enough(arguments, bug),
    };
    let begun = Instant::now();
    let searched = search.go(|runs| {
        if runs % arguments.progress.max(1) == 0 {
            eprintln!("{runs} of {all} seeds, {:.0} s", begun.elapsed().as_secs_f64());
        }
    });
    let runs = searched.runs;
    eprintln!("{runs} seeds in {:.1} s", begun.elapsed().as_secs_f64());
    for (name, count) in &searched.situations {
        println!("{count:10} {name}");
    }
    if searched.panics > 0 {
        eprintln!("{} seeds tripped an assertion of the product", searched.panics);
    }
    let failures = &searched.failures;
    if arguments.keep_going {
        for failure in failures {
            println!("seed {:#x} {} {}", failure.seed, failure.promise, first_words(&failure.what));
        }
    }
    if let Some(bug) = bug {
        let found: Vec<(u64, &str)> =
            failures.iter().map(|failure| (failure.seed, failure.promise)).collect();
        return Ok(found_in(bug, &found, runs));
    }
    if let Some(failure) = failures.first() {
        println!("{failure:#?}\nscripts/sim cluster seed {} shows its events", failure.seed);
        return Ok(ExitCode::FAILURE);
    }
    println!("{runs} seeds passed");
    Ok(ExitCode::SUCCESS)
}

fn run_seeds(arguments: &Arguments, bug: Option<Bug>) -> Result<ExitCode, String> {
    let seeds = seeds_of(arguments)?;
    options_of(0, &arguments.options)?;
    let all = seeds.len();
    let campaign = Campaign {
        seeds,
        set: arguments.options.clone(),
        jobs: arguments.jobs,
        watch: Watch { trace: arguments.trace, until_step: arguments.until_step },
        past_panics: bug.is_some(),
        enough: enough(arguments, bug),
    };
    let begun = Instant::now();
    let verdict = campaign.go(|runs| {
        if runs % arguments.progress.max(1) == 0 {
            eprintln!("{runs} of {all} seeds, {:.0} s", begun.elapsed().as_secs_f64());
        }
    });
    let took = begun.elapsed();
    let runs = verdict.runs;
    eprintln!("{runs} seeds, each twice, in {:.1} s", took.as_secs_f64());
    println!("{}", verdict.coverage);
    if verdict.panics > 0 {
        eprintln!("{} seeds tripped an assertion of the product", verdict.panics);
    }
    if arguments.keep_going {
        for failure in &verdict.failures {
            println!("seed {:#x} {} {}", failure.seed, failure.promise, first_words(&failure.why));
        }
    } else if let Some(failure) = verdict.failures.first().filter(|_| bug.is_none()) {
        tell(arguments, failure)?;
    }
    if let Some(bug) = bug {
        return Ok(found(bug, &verdict));
    }
    if !verdict.failures.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    println!("{runs} seeds passed");
    let (from, to) = arguments.seeds;
    if let Some(file) = arguments.totals.as_ref().filter(|_| arguments.seed.is_none()) {
        let (commit, seeds) = (commit(), format!("{from}..{to}"));
        let line = Line { commit: &commit, seeds: &seeds, runs, coverage: verdict.coverage, took };
        line.append(file).map_err(|error| format!("write {}: {error}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn found(bug: Bug, verdict: &Verdict) -> ExitCode {
    let found: Vec<(u64, &str)> =
        verdict.failures.iter().map(|failure| (failure.seed, failure.promise)).collect();
    found_in(bug, &found, verdict.runs)
}

/// Prints the verdict on the seeds that failed and their promises, and returns the exit code.
fn found_in(bug: Bug, found: &[(u64, &str)], runs: u64) -> ExitCode {
    let promises: Vec<&str> = found.iter().map(|(_, promise)| *promise).collect();
    match bug.found_on(&promises) {
        Ok(said) => {
            let first = found.first().map_or(0, |(seed, _)| *seed);
            println!("bug {}: first seed {first}; {said}; {runs} seeds run", bug.name);
            ExitCode::SUCCESS
        }
        Err(said) => {
            println!("bug {}: {said}; {runs} seeds run", bug.name);
            ExitCode::FAILURE
        }
    }
}

fn tell(arguments: &Arguments, failure: &Failure) -> Result<(), String> {
    let options = options_of(failure.seed, &arguments.options)?;
    let shrinks = !arguments.no_shrink && arguments.until_step.is_none() && arguments.bug.is_none();
    let shrunk = shrinks.then(|| shrink(failure.seed, &options, failure.promise)).flatten();
    let commit = commit();
    let report = Report {
        failure,
        options: &options,
        shrunk: shrunk.as_ref(),
        commit: &commit,
        bug: arguments.bug.as_deref(),
    };
    println!("\n{report}");
    Ok(())
}

/// The commit of the working directory; `unknown` outside of a repository.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|said| !said.is_empty());
    if changed { commit + "+" } else { commit }
}

fn first_words(text: &str) -> String {
    text.chars().take(300).map(|c| if c == '\n' { ' ' } else { c }).collect()
}

fn read_seeds(file: &std::path::Path) -> Result<Vec<u64>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("read {}: {error}", file.display()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty()).map(number).collect()
}
