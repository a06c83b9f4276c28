//! The stored form of a job. It is the value of a rule, which is as durable as a task.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tickwheel_api::{JobBody, JobState, Problem, SkippedBody};
use tickwheel_queue::{QueueName, Seq, Timestamp};

use crate::service::jobs::bulk::{Bulk, Position};
use crate::service::jobs::work::Work;
use crate::translate::cursor::Cursor;

/// A job and its progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    /// The job as clients see it.
    pub(crate) body: JobBody,
    /// The work of the job.
    pub(crate) bulk: Bulk,
    /// The pages before this one are done.
    pub(crate) at: Position,
}

/// The JSON value of a job's rule. Members of a later release are not read, and are lost with the next page.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    job: JobBody,
    #[serde(borrow)]
    request: &'a RawValue,
    /// Tasks that were put after this change are not changed.
    as_of: Option<u64>,
    /// The number of the list that the job is working on. A purge goes through two lists.
    part: usize,
    /// The cursor of the job in the list `part`.
    after: Option<String>,
    /// For a move: the latest instant that a task may get (ms since 1970). For a redrive: its begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest_ms: Option<i64>,
}

impl Job {
    /// A job that begins. Its number is 0 until it is stored.
    pub(crate) fn new(bulk: Bulk, of: u64) -> Self {
        let body = JobBody {
            id: 0,
            queue: bulk.queue.as_str().to_owned(),
            action: bulk.work.action(),
            state: JobState::Running,
            dry_run: bulk.work.dry_run(),
            of,
            looked_at: 0,
            matched: 0,
            done: 0,
            skipped: SkippedBody::default(),
            error: None,
        };
        Self { body, bulk, at: Position::default() }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.body.state == JobState::Running
    }

    /// Notes that the job failed, unless it had ended before. In that case the answer to its stop already said
    /// `stopped`.
    pub(crate) fn fail(&mut self, problem: Problem) {
        if self.is_running() {
            (self.body.state, self.body.error) = (JobState::Failed, Some(problem.detail));
        }
    }

    /// The value to store.
    pub(crate) fn value(&self) -> Vec<u8> {
        let Bulk { queue: of, work, as_of } = &self.bulk;
        let request = String::from_utf8(work.to_json()).expect("JSON is text");
        let request = RawValue::from_string(request).expect("it was written as JSON");
        let filter = work.filter(self.at.part).unwrap_or_default();
        let latest = match work {
            Work::Move(moving) => moving.latest,
            Work::Redrive(redriving) => Some(redriving.begun),
            Work::Cancel(_) | Work::Purge(_) => None,
        };
        let kept = Kept {
            job: self.body.clone(),
            request: &request,
            as_of: as_of.map(|seq| seq.0),
            part: self.at.part,
            after: self.at.after.map(|after| Cursor(after).write(of, &filter)),
            latest_ms: latest.map(Timestamp::as_ms),
        };
        serde_json::to_vec(&kept).expect("plain members")
    }

    /// Reads a value that [`value`](Self::value) wrote; `None` for any other value. The first stored value does
    /// not contain the job's number, because the job gets its number when it is stored. So the number comes from
    /// `id`.
    pub(crate) fn read(id: u64, value: &[u8]) -> Option<Self> {
        let Kept { job, request, as_of, part, after, latest_ms } = serde_json::from_slice(value).ok()?;
        let job = JobBody { id, ..job };
        let queue = QueueName::new(&job.queue).ok()?;
        let latest = latest_ms.and_then(Timestamp::from_ms);
        let work = Work::read(job.action, request.get().as_bytes(), latest)?;
        let filter = work.filter(part)?;
        let after = match after {
            None => None,
            Some(text) => Some(Cursor::read(&text, &queue, &filter)?.0),
        };
        let bulk = Bulk { queue, work, as_of: as_of.map(Seq) };
        Some(Self { body: job, bulk, at: Position { part, after } })
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_api::{BulkCancelBody, BulkMoveBody, MoveTo, PurgeBody, TaskFilter};
    use tickwheel_queue::TaskCursor;

    use super::*;
    use crate::service::jobs::work::{Move, Redriving};

    fn bulk(work: Work) -> Bulk {
        Bulk { queue: QueueName::new("shop/close").expect("a name"), work, as_of: Some(Seq(41)) }
    }

    fn filter() -> TaskFilter {
        TaskFilter { due_to_ms: Some(7), tag: Some("a \"quoted\" ü".to_owned()), ..TaskFilter::default() }
    }

    fn cursor() -> Option<TaskCursor> {
        let due_at = Timestamp::from_ms(5).expect("not negative");
        Some(TaskCursor { shard: 0, due_at, put_seq: Seq(3) })
    }

    #[test]
    fn a_job_is_read_as_it_was_kept() {
        let body = BulkCancelBody { filter: filter(), dry_run: false, revoke: true };
        let begun = Job::new(bulk(Work::Cancel(body)), 20_000);
        assert_eq!(Job::read(0, &begun.value()), Some(begun.clone()));
        let mut halfway = Job { at: Position { part: 0, after: cursor() }, ..begun };
        halfway.body.id = 1_795_000_000_000;
        halfway.body.looked_at = 10_000;
        halfway.body.error = Some("why".to_owned());
        let value = halfway.value();
        let text = String::from_utf8(value.clone()).expect("text");
        assert_eq!(Job::read(7, &value).map(|job| job.body.id), Some(7), "the number of the rule is right");
        assert_eq!(Job::read(1_795_000_000_000, &value), Some(halfway));
        for other in ["", "{}", "null", &text.replace("\"1-5-3-", "\"1-5-4-"), &text.replace("shop/", "-")] {
            assert_eq!(Job::read(1, other.as_bytes()), None, "{other}");
        }
    }

    /// The last page may be running while the job is stopped, and fail afterwards.
    #[test]
    fn a_stopped_job_cannot_fail() {
        let purge = Work::Purge(PurgeBody { dry_run: false, revoke: false });
        let begun = Job::new(bulk(purge), 20_000);
        for (before, after) in [(JobState::Running, JobState::Failed), (JobState::Stopped, JobState::Stopped)]
        {
            let mut job = begun.clone();
            job.body.state = before;
            job.fail(Problem::internal("no page"));
            assert_eq!((job.body.state, job.body.error.is_some()), (after, after == JobState::Failed));
        }
    }

    #[test]
    fn a_move_and_a_purge_are_read_as_they_were_kept() {
        let body = BulkMoveBody { filter: filter(), to: MoveTo::By(-5), dry_run: false, revoke: true };
        let moving = Move { body, latest: Timestamp::from_ms(9) };
        let mut job = Job::new(bulk(Work::Move(moving)), 20_000);
        job.at.after = cursor();
        job.body.skipped.leased = 3;
        assert_eq!(Job::read(0, &job.value()), Some(job));
        let purge = Work::Purge(PurgeBody { dry_run: true, revoke: true });
        let job = Job { at: Position { part: 1, after: cursor() }, ..Job::new(bulk(purge), 20_000) };
        assert_eq!(Job::read(0, &job.value()), Some(job.clone()));
        let filter = TaskFilter { key_contains: Some("order".to_owned()), ..filter() };
        let redrive = Work::Redrive(Redriving { filter, dry_run: false, begun: Timestamp::default() });
        let again = Job { at: Position { part: 0, after: cursor() }, ..Job::new(bulk(redrive), 20_000) };
        assert_eq!(Job::read(0, &again.value()), Some(again));
        let beyond = Job { at: Position { part: 2, after: None }, ..job };
        assert_eq!(Job::read(0, &beyond.value()), None, "it has two lists");
    }
}
