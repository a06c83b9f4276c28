//! `tickwheel move`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{
    BulkMoveAnswer, BulkMoveBody, Due, JobAction, MoveTo, PatchBody, PatchQuery, time::INSTANT_MS_MAX,
};

use super::many::{self, MANY, Many};
use crate::cli::Cli;
use crate::filter::Filter;
use crate::output::Format;
use crate::remote::Remote;
use crate::values;

/// Give a task another time, or all that a filter finds; all else of them stays
///
/// --in and --at give one instant to all of them, counted from when the server has the call. --by moves each from its own time, also
/// backwards (`--by -1h`); what would be due before now is due now. Leased tasks stay with their workers unless --revoke takes them, tasks
/// with a timeline are not moved, and dead ones have no time. What is not moved is counted, and then the exit code is 1.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel move close order:1 --in 30m
  tickwheel move close order:1 --at 2030-01-01T08:00:00+01:00 --if-match 41    only if it still is what I saw
  tickwheel move close --tag vip --by 1h --dry-run
  tickwheel move close --due-to 2030-01-01T00:00:00Z --at 2030-01-02T00:00:00Z
  tickwheel move close --all --by -1h                                        the whole plan an hour earlier")]
pub(crate) struct Move {
    /// The queue
    #[arg(value_parser = values::queue)]
    queue: String,
    /// The task's key
    #[arg(value_parser = values::key, conflicts_with_all = MANY)]
    key: Option<String>,
    #[command(flatten)]
    to: To,
    /// Only if the task has this version
    #[arg(long, value_name = "VERSION", value_parser = values::version, conflicts_with_all = MANY)]
    if_match: Option<u64>,
    /// Every task that is not dead, whatever it is
    #[arg(long, conflicts_with_all = ["state", "due_from", "due_to", "tag"])]
    all: bool,
    #[command(flatten)]
    filter: Filter,
    /// Move none, and say how many there are
    #[arg(long, conflicts_with = "key")]
    dry_run: bool,
    /// Take the task out of a worker's hands if it is leased
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    remote: Remote,
    #[command(flatten)]
    format: Format,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct To {
    /// Due so long from now, such as 250ms, 30m, 1h30m or 15d
    #[arg(long = "in", value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true)]
    delay_ms: Option<u64>,
    /// Due at this time, RFC 3339 or milliseconds since 1970
    #[arg(long = "at", value_name = "TIME", value_parser = values::instant, allow_hyphen_values = true)]
    at_ms: Option<i64>,
    /// Due so much later than before, or earlier: 1h, -1h
    #[arg(long = "by", value_name = "DURATION", value_parser = values::shift, allow_hyphen_values = true)]
    by_ms: Option<i64>,
}

impl To {
    fn wanted(&self) -> MoveTo {
        let by = self.by_ms.map(MoveTo::By);
        let to = self.delay_ms.map(MoveTo::After).or(self.at_ms.map(MoveTo::At)).or(by);
        to.expect("one of them has to be there")
    }
}

impl Move {
    /// Sends it and prints the task, or how many there were.
    ///
    /// # Errors
    /// No server, or a refusal.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Some(key) = self.key.clone() else {
            if !self.all && self.filter.is_empty() {
                let what = "which tasks? give a key, or a filter (--tag, --state, --due-from, --due-to), or --all for every task";
                Cli::misused("move", format!("{what} of {}", self.queue));
            }
            return self.many();
        };
        let client = self.remote.client()?;
        let (due, if_match) = match self.to.wanted() {
            MoveTo::After(ms) => (Due::After(ms), self.if_match),
            MoveTo::At(ms) => (Due::At(ms), self.if_match),
            MoveTo::By(ms) => {
                // From the time that the task has now: nobody else's change may come between.
                let task = client.get(&self.queue, &key)?;
                let at_ms = task.due_at_ms.saturating_add(ms).clamp(0, INSTANT_MS_MAX);
                (Due::At(at_ms), self.if_match.or(Some(task.version)))
            }
        };
        let body = PatchBody { due: Some(due), ..PatchBody::default() };
        let task = client.patch(&self.queue, &key, &body, PatchQuery { revoke: self.revoke }, if_match)?;
        self.format.print([task])?;
        Ok(ExitCode::SUCCESS)
    }

    /// All that the filter finds.
    fn many(self) -> Result<ExitCode> {
        let client = self.remote.client()?;
        let (to, dry_run, revoke) = (self.to.wanted(), self.dry_run, self.revoke);
        let body = BulkMoveBody { filter: self.filter.wanted(), to, dry_run, revoke };
        let many = |BulkMoveAnswer { matched, moved, skipped }| Many {
            queue: self.queue.clone(),
            action: JobAction::Move,
            dry_run,
            matched,
            done: moved,
            skipped,
        };
        let answered = client.move_many(&self.queue, &body)?.map(many);
        many::finish(&client, &self.format, answered)
    }
}
