//! Jobs: work on many tasks that goes on after its call was answered.

use crate::bad_request::BadRequest;
use crate::body::{Meaning, Slots, body, means};
use crate::bulk::SkippedBody;
use crate::choice::choice;
use crate::kind::{choice, count, flag, list, object, text};
use crate::part::{has, may, shown, unless};

choice! {
    /// How a job goes.
    pub enum JobState {
        /// It is under way, or waits for its turn among the jobs.
        Running = "running",
        /// It has looked at all there is.
        Done = "done",
        /// A caller stopped it; what it has done stays.
        Stopped = "stopped",
        /// It could not go on, see `error`; what it has done stays.
        Failed = "failed",
    }
}

choice! {
    /// What a job does with the tasks that it finds.
    #[derive(Default)]
    pub enum JobAction {
        /// It cancels them. A job of a server that knew no other action says nothing of it.
        #[default]
        Cancel = "cancel",
        /// It gives them another time.
        Move = "move",
        /// It removes all tasks of the queue.
        Purge = "purge",
    }
}

impl JobAction {
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
#[derive(Debug, Clone, PartialEq, Eq)]
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

body! {
    /// Work that goes on after its call was answered, and after a restart of the server. Of a server that was killed the page of up to 1,000 tasks that it was at may be missing in its counts.
    ///
    /// Of the three counts it has the one of its action.
    pub(crate) struct JobMembers: group "Job" {
        /// Its number.
        id: u64 = has(count());
        /// The queue.
        queue: String = has(text(200, ""));
        /// What it does.
        action: JobAction = shown(JobAction::Cancel, choice());
        /// How it goes. A job that waits for its turn is `running`, too.
        state: JobState = has(choice());
        /// Whether it only counts.
        dry_run: bool = has(flag());
        /// Tasks that the queue had at its start.
        of: u64 = has(count());
        /// Those of them that it has looked at.
        looked_at: u64 = has(count());
        /// Tasks that it found. A task that is put off, or dies, while the job is at work may be found twice.
        matched: u64 = has(count());
        /// Those of them that it ended, if it cancels.
        cancelled: Option<u64> = may(count());
        /// Those of them that it moved, if it moves.
        moved: Option<u64> = may(count());
        /// Those of them that it removed, if it purges.
        purged: Option<u64> = may(count());
        /// Why it did not do it to the others.
        skipped: SkippedBody = unless(SkippedBody::default(), object());
        /// Why it could not go on.
        error: Option<String> = may(text(4_096, ""));
    }
}

impl Meaning for JobBody {
    type Members = JobMembers;

    fn of_members(
        members: JobMembers,
        _: Option<Self>,
        _: Slots<'_, '_>,
    ) -> Result<Option<Self>, BadRequest> {
        let JobMembers { id, queue, action, state, dry_run, of, looked_at, matched, skipped, error, .. } =
            members;
        let counted = match action {
            JobAction::Cancel => members.cancelled,
            JobAction::Move => members.moved,
            JobAction::Purge => members.purged,
        };
        let done = counted.unwrap_or_default();
        Ok(Some(Self { id, queue, action, state, dry_run, of, looked_at, matched, done, skipped, error }))
    }

    fn to_members(&self) -> JobMembers {
        let Self { id, queue, action, state, dry_run, of, looked_at, matched, done, skipped, error } =
            self.clone();
        let of_action = |of: JobAction| (action == of).then_some(done);
        let (cancelled, moved) = (of_action(JobAction::Cancel), of_action(JobAction::Move));
        let purged = of_action(JobAction::Purge);
        JobMembers {
            id,
            queue,
            action,
            state,
            dry_run,
            of,
            looked_at,
            matched,
            cancelled,
            moved,
            purged,
            skipped,
            error,
        }
    }
}

means!(answer JobBody);

body! {
    /// Jobs.
    ///
    /// The answer to `GET /v1/jobs`: those under way and the last 100 that are over.
    pub struct JobsBody: answer "Jobs" {
        /// The newest first.
        jobs: Vec<JobBody> = has(list(object(), ""));
    }
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
