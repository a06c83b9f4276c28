//! All rounds of `calls`.

use std::path::PathBuf;

use clap::ValueEnum as _;

use super::{beanstalk, cases, lists};
use crate::report::Report;

/// Calls that are made to one server.
#[derive(Copy, Clone, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Group {
    Small,
    OneTask,
    ManyTasks,
    Lists,
    Batches,
    Schedules,
    Queues,
    Beanstalk,
    Tokens,
}

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
    /// Make the calls of these groups alone.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "GROUPS")]
    only: Vec<Group>,
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
    let CallsArguments { rounds, queues, tokens, only, .. } = arguments;
    let groups = Group::value_variants().iter().filter(|group| only.is_empty() || only.contains(group));
    for group in groups {
        match group {
            Group::Small => cases::small(*rounds, &mut take)?,
            Group::OneTask => cases::one_task(*rounds, &mut take)?,
            Group::ManyTasks => cases::many_tasks(*rounds, &mut take)?,
            Group::Lists => lists::lists(*rounds, &mut take)?,
            Group::Batches => cases::batches(*rounds, &mut take)?,
            Group::Schedules => cases::schedules(*rounds, &mut take)?,
            Group::Queues => cases::queues(*rounds, *queues, &mut take)?,
            Group::Beanstalk => beanstalk::beanstalk(*rounds, &mut take)?,
            Group::Tokens => cases::tokens(*rounds, *tokens, &base, &mut take)?,
        }
    }
    for (case, us) in longest {
        report.add(&case, "calls", 1, "longest_us", us);
    }
    Ok(report)
}
