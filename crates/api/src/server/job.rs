//! Jobs: changes of many tasks that go on after their calls were answered.

use crate::declare::{
    Mapped, RawMembers, body, choice, count, flag, has, list, may, object, role, shown, text, unless,
};
use crate::tasks::bulk::SkippedBody;
use crate::text::bad_request::BadRequest;

choice! {
    /// The state of a job.
    pub enum JobState {
        /// The job is under way, or waits for its turn among the jobs.
        Running = "running",
        /// The job has looked at all tasks.
        Done = "done",
        /// A caller stopped the job. Its changes so far stay.
        Stopped = "stopped",
        /// The job could not go on; `error` says why. Its changes so far stay.
        Failed = "failed",
    }
}

choice! {
    /// The action of a job on the tasks that it finds.
    #[derive(Default)]
    pub enum JobAction {
        /// The job cancels the tasks. Early releases knew no other action, so their jobs have no `action`.
        #[default]
        Cancel = "cancel",
        /// The job gives the tasks another due time.
        Move = "move",
        /// The job removes all tasks of the queue.
        Purge = "purge",
        /// The job makes dead tasks ready again.
        Redrive = "redrive",
    }
}

impl JobAction {
    /// The member of the answer that counts the tasks that the job has changed.
    #[must_use]
    pub fn counted(self) -> &'static str {
        match self {
            Self::Cancel => "cancelled",
            Self::Move => "moved",
            Self::Purge => "purged",
            Self::Redrive => "redriven",
        }
    }
}

/// A change of many tasks that goes on by itself, also after a restart. It is the answer 202 to the call, and the answer to `GET` and
/// `DELETE /v1/jobs/{id}`.
///
/// If the server was killed, `matched`, `done` and `skipped` may lack the page of up to 1,000 tasks that the job was at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobBody {
    /// The number of the job.
    pub id: u64,
    /// The queue.
    pub queue: String,
    /// The action of the job.
    pub action: JobAction,
    /// The state of the job.
    pub state: JobState,
    /// Whether the job only counts tasks and changes nothing.
    pub dry_run: bool,
    /// Number of tasks in the queue when the job started.
    pub of: u64,
    /// Number of tasks that the job has looked at.
    pub looked_at: u64,
    /// Number of tasks that the job found. A task that is postponed or dies while the job runs may be counted twice.
    pub matched: u64,
    /// Number of tasks that the job has changed; on the wire also `cancelled`, `moved`, `purged` or `redriven`, by the action.
    pub done: u64,
    /// Number of found tasks that were not changed, by reason.
    pub skipped: SkippedBody,
    /// Why the job failed.
    pub error: Option<String>,
}

body! {
    /// A change of many tasks that goes on after its call was answered, also after a restart of the server. If the server was killed, the counts may lack the page of up to 1,000 tasks that the job was at.
    ///
    /// `done` counts the changed tasks of every job. A job also has one of the members `cancelled`, `moved`, `purged` and `redriven`, with the same number: the one of its action.
    pub(crate) struct JobMembers: group "Job" {
        /// The number of the job.
        id: u64 = has(count());
        /// The queue.
        queue: String = has(text(200, ""));
        /// The action of the job.
        action: JobAction = shown(JobAction::Cancel, choice());
        /// The kind of the job. It is the same word as `action`.
        kind: JobAction = shown(JobAction::Cancel, choice());
        /// The state of the job. A job that waits for its turn is `running`, too.
        state: JobState = has(choice());
        /// Whether the job only counts tasks and changes nothing.
        dry_run: bool = has(flag());
        /// Number of tasks in the queue when the job started.
        of: u64 = has(count());
        /// Number of tasks that the job has looked at.
        looked_at: u64 = has(count());
        /// Number of tasks that the job found. A task that is postponed or dies while the job runs may be counted twice.
        matched: u64 = has(count());
        /// Number of tasks that the job has changed so far. A job that only counts tasks changes none.
        done: u64 = shown(0, count());
        /// Number of tasks that a job with the action `cancel` has cancelled.
        cancelled: Option<u64> = may(count());
        /// Number of tasks that a job with the action `move` has moved.
        moved: Option<u64> = may(count());
        /// Number of tasks that a job with the action `purge` has removed.
        purged: Option<u64> = may(count());
        /// Number of tasks that a job with the action `redrive` has made ready again.
        redriven: Option<u64> = may(count());
        /// Number of found tasks that were not changed, by reason.
        skipped: SkippedBody = unless(SkippedBody::default(), object());
        /// Why the job failed.
        error: Option<String> = may(text(4_096, ""));
    }
}

impl Mapped for JobBody {
    type Members = JobMembers;

    fn from_members(members: JobMembers, _: Option<Self>, _: RawMembers<'_, '_>) -> Result<Self, BadRequest> {
        let JobMembers {
            id,
            queue,
            action,
            state,
            dry_run,
            of,
            looked_at,
            matched,
            done,
            skipped,
            error,
            ..
        } = members;
        Ok(Self { id, queue, action, state, dry_run, of, looked_at, matched, done, skipped, error })
    }

    fn to_members(&self) -> JobMembers {
        let Self { id, queue, action, state, dry_run, of, looked_at, matched, done, skipped, error } =
            self.clone();
        let of_action = |of: JobAction| (action == of).then_some(done);
        let (cancelled, moved) = (of_action(JobAction::Cancel), of_action(JobAction::Move));
        let (purged, redriven) = (of_action(JobAction::Purge), of_action(JobAction::Redrive));
        JobMembers {
            id,
            queue,
            action,
            kind: action,
            state,
            dry_run,
            of,
            looked_at,
            matched,
            done,
            cancelled,
            moved,
            purged,
            redriven,
            skipped,
            error,
        }
    }
}

role!(functions answer JobBody);

body! {
    /// A list of jobs.
    ///
    /// The answer to `GET /v1/jobs`: the jobs under way, and the last 100 that have ended.
    pub struct JobsBody: answer "Jobs" {
        /// The jobs, the newest first.
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
                r#"{{"id":1,"queue":"q","action":"{0}","kind":"{0}","state":"running","dry_run":false,"of":9,"looked_at":8,"matched":7,"done":6,"{1}":6}}"#,
                action.name(),
                action.counted()
            );
            let job: JobBody = serde_json::from_str(&text).expect("a job");
            assert_eq!((job.action, job.matched, job.done), (action, 7, 6));
            assert_eq!(serde_json::to_string(&job).expect("JSON"), text);
        }
    }
}
