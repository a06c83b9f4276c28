//! All rounds of `http`, and the processes that they start.

use std::path::PathBuf;
use std::time::Duration;

use super::{bare, batches, burst, lateness, puts, server};
use crate::report::Report;
use crate::sample::Sample;
use crate::scratch::Scratch;

/// How large and how often.
#[derive(clap::Args, Debug)]
pub(crate) struct HttpArguments {
    /// How often each is measured.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// How long a round of puts or of batches takes, seconds.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Tasks that are pending while others fall due.
    #[arg(long, default_value_t = 1_000_000)]
    pending: u64,
    /// Tasks that fall due in ten seconds.
    #[arg(long, default_value_t = 50_000)]
    due: u64,
    /// Tasks that fall due in one millisecond.
    #[arg(long, default_value_t = 1_000_000)]
    burst: u64,
    /// Measure only these, some of `puts`, `batches`, `lateness` and `burst`.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Where to put data, a folder; by default that of the system for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// One of the processes that are measured.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Part {
    /// A server that says on each line of its input how much processor time it has used.
    Serve {
        /// Its data.
        dir: PathBuf,
    },
    /// A server that parses the body of a put and answers as much as ours, and does nothing else.
    Bare {
        /// Makes each body durable in a file in this folder, and then answers.
        dir: Option<PathBuf>,
    },
    /// The embedded queue, put into in batches of 1,000.
    Embedded {
        /// Its data.
        dir: PathBuf,
        /// How long.
        seconds: f64,
    },
}

/// Runs one of the processes.
pub(crate) fn part(part: &Part) -> anyhow::Result<()> {
    match part {
        Part::Serve { dir } => server::serve(dir),
        Part::Bare { dir } => bare::serve(dir.as_deref()),
        Part::Embedded { dir, seconds } => {
            let sample = batches::embedded(dir, Duration::from_secs_f64(*seconds))?;
            print!("{}", sample.lines());
            Ok(())
        }
    }
}

/// Runs all rounds.
pub(crate) fn run(arguments: &HttpArguments) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let wanted = |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
    let base = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    for round in 0..arguments.rounds {
        let mut take = |implementation: &str, workload: &str, n, sample: Sample| {
            for (name, value) in sample.figures {
                report.add(implementation, workload, n, &name, value);
            }
        };
        if wanted("puts") {
            let scratch =
                Scratch::new(&base, &format!("tickwheel-bench-http-{}-{round}", std::process::id()))?;
            let span = Duration::from_secs_f64(arguments.seconds);
            for sample in puts::all(scratch.path(), span, round)? {
                take(sample.0, "http-puts", 1, sample.1);
            }
        }
        if wanted("batches") {
            let scratch =
                Scratch::new(&base, &format!("tickwheel-bench-http-{}-{round}", std::process::id()))?;
            for sample in batches::both(scratch.path(), Duration::from_secs_f64(arguments.seconds))? {
                take(sample.0, "http-batches", 1_000, sample.1);
            }
        }
        if wanted("lateness") {
            let scratch =
                Scratch::new(&base, &format!("tickwheel-bench-http-{}-{round}", std::process::id()))?;
            let (ours, control) = lateness::measured(scratch.path(), arguments.pending, arguments.due)?;
            take("server", "http-lateness", arguments.pending, ours);
            take("control-sleep", "http-lateness", arguments.pending, control);
        }
        if wanted("burst") {
            let scratch =
                Scratch::new(&base, &format!("tickwheel-bench-http-{}-{round}", std::process::id()))?;
            take("server", "http-burst", arguments.burst, burst::measured(scratch.path(), arguments.burst)?);
        }
        eprintln!("round {} of {}", round + 1, arguments.rounds);
    }
    Ok(report)
}
