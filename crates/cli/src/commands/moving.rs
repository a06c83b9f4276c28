//! `tickwheel move`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tickwheel_api::{
    BulkMoveAnswer, BulkMoveBody, Due, JobAction, MoveTo, PatchBody, RevokeQuery, time::INSTANT_MS_MAX,
};

use super::many::{self, Many};
use super::which::Which;
use crate::values;

/// Give another due time to a task, or to all tasks that a filter finds; nothing else changes
///
/// --in and --at set the same instant for all tasks; --in counts from the moment at which the server has the call. --by moves each task
/// from its own due time, also backwards (`--by -1h`); a task whose new time is past is due now. A leased task is moved only with --revoke.
/// Tasks with a timeline and dead tasks are not moved. Tasks that are not moved are counted, and then the exit code is 1.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tickwheel move close order:1 --in 30m
  tickwheel move close order:1 --at 2030-01-01T08:00:00+01:00 --if-match 41    only if it still is what I saw
  tickwheel move close --tag vip --by 1h --dry-run
  tickwheel move close --due-to 2030-01-01T00:00:00Z --at 2030-01-02T00:00:00Z
  tickwheel move close --all --by -1h                                        the whole plan an hour earlier")]
pub(crate) struct Move {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    to: To,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct To {
    /// The time from now until the task is due, such as 250ms, 30m, 1h30m or 15d
    #[arg(long = "in", value_name = "DURATION", value_parser = values::delay, allow_hyphen_values = true)]
    delay_ms: Option<u64>,
    /// Due at this time, RFC 3339 or milliseconds since 1970
    #[arg(long = "at", value_name = "TIME", value_parser = values::instant, allow_hyphen_values = true)]
    at_ms: Option<i64>,
    /// The shift of the due time: 1h is later, -1h is earlier
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
    /// Sends the move and prints the task, or the number of tasks.
    ///
    /// # Errors
    /// There is no server, or it refuses.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let Some(key) = self.which.key("move") else { return self.many() };
        let Which { queue, if_match: version, revoke, remote, format, .. } = self.which;
        let client = remote.client()?;
        let (due, if_match) = match self.to.wanted() {
            MoveTo::After(ms) => (Due::After(ms), version),
            MoveTo::At(ms) => (Due::At(ms), version),
            MoveTo::By(ms) => {
                // The new time is computed from the task's present time, so the version must not change before the patch.
                let task = client.get(&queue, &key)?;
                let at_ms = task.due_at_ms.saturating_add(ms).clamp(0, INSTANT_MS_MAX);
                (Due::At(at_ms), version.or(Some(task.version)))
            }
        };
        let body = PatchBody { due: Some(due), ..PatchBody::default() };
        let task = client.patch(&queue, &key, &body, RevokeQuery { revoke }, if_match)?;
        format.print([task])?;
        Ok(ExitCode::SUCCESS)
    }

    /// Moves all tasks that the filter finds.
    fn many(self) -> Result<ExitCode> {
        let Which { queue, filter, dry_run, revoke, remote, format, .. } = self.which;
        let client = remote.client()?;
        let body = BulkMoveBody { filter: filter.wanted(), to: self.to.wanted(), dry_run, revoke };
        let many = |BulkMoveAnswer { matched, moved, skipped }| Many {
            queue: queue.clone(),
            action: JobAction::Move,
            dry_run,
            matched,
            done: moved,
            skipped,
        };
        let answered = client.move_many(&queue, &body)?.map(many);
        many::finish(&client, &format, answered)
    }
}
