//! Operations on many tasks: the server answers with the result, or with a job that does the work.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use tickwheel_api::{BULK_MAX, JobAction, JobBody, JobState, SkippedBody};
use tickwheel_client::blocking::Client;

use crate::missing;
use crate::output::{Format, Row, say};

/// The time between two requests for the state of a job.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The result of an operation on many tasks.
#[derive(Debug)]
pub(super) struct Many {
    pub(super) queue: String,
    pub(super) action: JobAction,
    pub(super) dry_run: bool,
    pub(super) matched: u64,
    pub(super) done: u64,
    pub(super) skipped: SkippedBody,
}

impl From<JobBody> for Many {
    fn from(job: JobBody) -> Self {
        let JobBody { queue, action, dry_run, matched, done, skipped, .. } = job;
        Self { queue, action, dry_run, matched, done, skipped }
    }
}

/// Prints the result. For a job, reports the progress until the job ends; the job goes on if this process ends first.
pub(super) fn finish(client: &Client, format: &Format, answered: Result<Many, JobBody>) -> Result<ExitCode> {
    let mut job = match answered {
        Ok(many) => {
            let settled = many.settled();
            if many.matched == 0 && client.queue(&many.queue).is_ok_and(|queue| !queue.exists) {
                say(&missing::told(client, &many.queue));
            }
            format.print([many])?;
            return Ok(settled);
        }
        Err(job) => job,
    };
    say(&format!(
        "there are more than {BULK_MAX} tasks, or many to examine: job {} does the work, and goes on if this command ends",
        job.id
    ));
    while job.state == JobState::Running {
        std::thread::sleep(LOOK_AGAIN);
        job = client.job(job.id).with_context(|| {
            format!("job {} goes on by itself, see `tickwheel jobs show {}`", job.id, job.id)
        })?;
        let JobBody { looked_at, of, matched, done, action, .. } = &job;
        say(&format!("looked at {looked_at} of {of}, found {matched}, {} {done}", action.counted()));
    }
    let (state, error, action) = (job.state, job.error.clone(), job.action);
    let many = Many::from(job);
    let settled = many.settled();
    format.print([many])?;
    match error {
        // A second call would move the tasks that a shift has moved once more.
        Some(error) if action == JobAction::Move => bail!(
            "the job could not go on: {error}; what it moved stays moved: run the command again only if it has an instant (--at, --in), not a shift (--by)"
        ),
        Some(error) => bail!("the job could not go on: {error}; run the command again"),
        None if state == JobState::Stopped => bail!("the job was stopped"),
        None => Ok(settled),
    }
}

impl Many {
    /// Success if all found tasks were changed. Otherwise the reason is printed.
    fn settled(&self) -> ExitCode {
        if self.dry_run || self.matched == self.done {
            return ExitCode::SUCCESS;
        }
        let why: Vec<String> = self
            .skipped
            .reasons()
            .iter()
            .map(|(reason, tasks)| format!("{tasks} {}", said(reason)))
            .collect();
        let left = self.matched.saturating_sub(self.done);
        let why = if why.is_empty() { String::new() } else { format!(": {}", why.join(", ")) };
        say(&format!("{left} were not {}{why}", self.action.counted()));
        ExitCode::FAILURE
    }
}

/// The text for a reason, to be written after the number of tasks that it concerns.
fn said(reason: &str) -> &str {
    match reason {
        "leased" => "are leased (--revoke takes them from their workers)",
        "changed" => "were changed or ended meanwhile",
        "timeline" => "have a timeline, which is replaced as a whole (tickwheel patch --timeline)",
        "expires_first" => "would expire before the new time",
        "live" => "have keys that live tasks have now",
        "draining" => "stay dead, because the queue is being drained (`tickwheel queues resume` ends this)",
        "backlog_full" => "stay dead, because the queue has all the tasks it may have (`max_backlog`)",
        "too_far" => "would be due later than the server or the token allows",
        other => other,
    }
}

impl Serialize for Many {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("queue", &self.queue)?;
        map.serialize_entry("matched", &self.matched)?;
        map.serialize_entry(self.action.counted(), &self.done)?;
        if !self.skipped.is_empty() {
            map.serialize_entry("skipped", &self.skipped)?;
        }
        map.end()
    }
}

impl Row for Many {
    const HEADER: &'static [&'static str] = &["QUEUE", "ACTION", "MATCHED", "DONE", "SKIPPED"];

    fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain JSON")
    }

    fn cells(&self) -> Vec<String> {
        let counts = [self.matched, self.done].map(|count| count.to_string());
        let names = vec![self.queue.clone(), self.action.name().to_owned()];
        [names, counts.to_vec(), vec![skipped_cell(self.skipped)]].concat()
    }
}

/// The skipped tasks by reason, in a cell of a table.
pub(super) fn skipped_cell(skipped: SkippedBody) -> String {
    let reasons = skipped.reasons();
    reasons.iter().map(|(reason, tasks)| format!("{tasks} {reason}")).collect::<Vec<_>>().join(", ")
}
