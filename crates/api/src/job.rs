//! Jobs: work on many tasks that goes on after its call was answered.

use crate::bulk::SkippedBody;
use serde::{Deserialize, Serialize};

/// How a job goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It is under way, or waits for its turn among the jobs.
    Running,
    /// It has looked at all there is.
    Done,
    /// A caller stopped it; what it has done stays.
    Stopped,
    /// It could not go on, see `error`; what it has done stays.
    Failed,
}

impl JobState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Running, Self::Done, Self::Stopped, Self::Failed];

    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// What a job does with the tasks that it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobAction {
    /// It cancels them. A job of a server that knew no other action says nothing of it.
    #[default]
    Cancel,
    /// It gives them another time.
    Move,
    /// It removes all tasks of the queue.
    Purge,
}

impl JobAction {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cancel, Self::Move, Self::Purge];

    /// The word on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Move => "move",
            Self::Purge => "purge",
        }
    }

    /// The member that counts those for which it is done.
    #[must_use]
    pub fn counted(self) -> &'static str {
        match self {
            Self::Cancel => "cancelled",
            Self::Move => "moved",
            Self::Purge => "purged",
        }
    }
}

/// Work on many tasks that goes on by itself, after a restart too: the answer 202 of the call, and to `GET` and `DELETE /v1/jobs/{id}`.
///
/// Of a server that was killed, the page of up to 1,000 tasks that it was at may be missing in `matched`, in `done` and in `skipped`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct JobBody {
    /// Its number.
    pub id: u64,
    /// The queue.
    pub queue: String,
    /// What it does.
    pub action: JobAction,
    /// How it goes.
    pub state: JobState,
    /// Whether it only counts.
    pub dry_run: bool,
    /// How many tasks the queue had at its start.
    pub of: u64,
    /// How many of them it has looked at.
    pub looked_at: u64,
    /// How many it found. A task that is put off, or dies, while the job is at work may be found twice.
    pub matched: u64,
    /// For how many of those it is done; on the wire `cancelled`, `moved` or `purged`, by the action.
    pub done: u64,
    /// Why it was not done for others.
    pub skipped: SkippedBody,
    /// Why it could not go on.
    pub error: Option<String>,
}

/// A job as it stands on the wire: of the three counts it has the one of its action.
#[derive(Serialize, Deserialize)]
struct Wire {
    id: u64,
    queue: String,
    #[serde(default)]
    action: JobAction,
    state: JobState,
    dry_run: bool,
    of: u64,
    looked_at: u64,
    matched: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancelled: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moved: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    purged: Option<u64>,
    #[serde(default, skip_serializing_if = "SkippedBody::is_empty")]
    skipped: SkippedBody,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl From<Wire> for JobBody {
    fn from(wire: Wire) -> Self {
        let Wire { id, queue, action, state, dry_run, of, looked_at, matched, skipped, error, .. } = wire;
        let counted = match action {
            JobAction::Cancel => wire.cancelled,
            JobAction::Move => wire.moved,
            JobAction::Purge => wire.purged,
        };
        let done = counted.unwrap_or_default();
        Self { id, queue, action, state, dry_run, of, looked_at, matched, done, skipped, error }
    }
}

impl From<JobBody> for Wire {
    fn from(job: JobBody) -> Self {
        let JobBody { id, queue, action, state, dry_run, of, looked_at, matched, done, skipped, error } = job;
        let of_action = |of: JobAction| (action == of).then_some(done);
        Self {
            id,
            queue,
            action,
            state,
            dry_run,
            of,
            looked_at,
            matched,
            cancelled: of_action(JobAction::Cancel),
            moved: of_action(JobAction::Move),
            purged: of_action(JobAction::Purge),
            skipped,
            error,
        }
    }
}

/// The answer to `GET /v1/jobs`: `{"jobs": [...]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobsBody {
    /// Those under way and the last 100 that are over, the newest first.
    pub jobs: Vec<JobBody>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_counts_under_the_name_of_its_action() {
        for action in JobAction::ALL {
            let text = format!(
                r#"{{"id":1,"queue":"q","action":"{}","state":"running","dry_run":false,"of":9,"looked_at":8,"matched":7,"{}":6}}"#,
                action.name(),
                action.counted()
            );
            let job: JobBody = serde_json::from_str(&text).expect("a job");
            assert_eq!((job.action, job.matched, job.done), (action, 7, 6));
            assert_eq!(serde_json::to_string(&job).expect("JSON"), text);
        }
    }

    /// A job that a server kept before there were moves goes on after an update.
    #[test]
    fn a_job_without_an_action_cancels() {
        let text = r#"{"id":1,"queue":"q","state":"done","dry_run":false,"of":9,"looked_at":9,"matched":7,"cancelled":6}"#;
        let job: JobBody = serde_json::from_str(text).expect("a job");
        assert_eq!((job.action, job.done), (JobAction::Cancel, 6));
    }
}
