//! `tickwheel jobs`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use tickwheel_api::JobBody;

use super::many::skipped_cell;
use crate::output::{Format, Row, say};
use crate::remote::Remote;

/// Show the jobs that cancel, move, purge or redrive many tasks, or stop a job
///
/// The server carries out `tickwheel cancel`, `move`, `purge` and `redrive` as a job if they concern many tasks. A job goes on after its
/// caller has left, and after a restart of the server. The server keeps the last 100 jobs that ended.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel jobs
  tickwheel jobs show 1795389349929
  tickwheel jobs stop 1795389349929")]
pub(crate) struct Jobs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show one job
    Show(Number),
    /// Stop one job; what it has done already stays done
    Stop(Number),
}

#[derive(Args, Debug)]
struct Number {
    /// The number of the job
    id: u64,
}

impl Jobs {
    /// Asks for the jobs and prints them.
    ///
    /// # Errors
    /// There is no server, or no such job.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let jobs = match self.verb {
            None => client.jobs()?,
            Some(Verb::Show(number)) => vec![client.job(number.id)?],
            Some(Verb::Stop(number)) => vec![client.stop_job(number.id)?],
        };
        if jobs.is_empty() {
            say("there are no jobs");
        } else {
            self.format.print(jobs)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Row for JobBody {
    const HEADER: &'static [&'static str] =
        &["JOB", "QUEUE", "ACTION", "STATE", "LOOKED AT", "OF", "FOUND", "DONE", "REMARKS"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an answer is plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let counts = [self.looked_at, self.of, self.matched, self.done].map(|count| count.to_string());
        let dry_run = self.dry_run.then(|| "dry run".to_owned());
        let skipped = (!self.skipped.is_empty()).then(|| format!("skipped {}", skipped_cell(self.skipped)));
        let remarks: Vec<String> = dry_run.into_iter().chain(skipped).chain(self.error.clone()).collect();
        let (action, state) = (self.action.name().to_owned(), self.state.name().to_owned());
        let names = vec![self.id.to_string(), self.queue.clone(), action, state];
        [names, counts.to_vec(), vec![remarks.join(", ")]].concat()
    }
}
