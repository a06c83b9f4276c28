//! All rounds of `calls`.

use std::path::PathBuf;

use super::cases;
use crate::report::Report;

/// How often, and how much there is.
#[derive(clap::Args, Debug)]
pub(crate) struct CallsArguments {
    /// How often each call is made.
    #[arg(long, default_value_t = 9)]
    rounds: u64,
    /// Queues that there are for the calls that show all of them.
    #[arg(long, default_value_t = 100_000)]
    queues: usize,
    /// Tokens that the server knows for the call with a token; it takes at most 1,000.
    #[arg(long, default_value_t = 1_000)]
    tokens: usize,
    /// Where to put the file of tokens, a folder; by default that of the system for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Makes each call so often.
pub(crate) fn run(arguments: &CallsArguments) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let base = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let mut longest: Vec<(String, f64)> = Vec::new();
    let mut take = |case: &str, us: f64| {
        report.add(case, "calls", 1, "stretch_us", us);
        match longest.iter_mut().find(|(known, _)| known == case) {
            Some((_, most)) => *most = most.max(us),
            None => longest.push((case.to_owned(), us)),
        }
    };
    cases::small(arguments.rounds, &mut take)?;
    cases::one_task(arguments.rounds, &mut take)?;
    cases::many_tasks(arguments.rounds, &mut take)?;
    cases::batches(arguments.rounds, &mut take)?;
    cases::schedules(arguments.rounds, &mut take)?;
    cases::queues(arguments.rounds, arguments.queues, &mut take)?;
    cases::beanstalk(arguments.rounds, &mut take)?;
    cases::tokens(arguments.rounds, arguments.tokens, &base, &mut take)?;
    for (case, us) in longest {
        report.add(&case, "calls", 1, "longest_us", us);
    }
    Ok(report)
}
