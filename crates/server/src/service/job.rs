//! A job as it is kept: a task of the queue `$jobs`, so that a job survives whatever tasks survive.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tickwheel_api::{JobBody, JobState, Problem, SkippedBody};
use tickwheel_queue::{Body, Key, Put, QueueName, Seq, Timestamp};

use crate::service::bulk::{Bulk, Position};
use crate::service::work::Work;
use crate::translate::cursor::Cursor;

/// The queue that jobs are kept in. Everybody who may read all queues can look at it; nobody but the server changes it.
pub(crate) const QUEUE: &str = "$jobs";

/// When the tasks of jobs are due, for they are nobody's work: the year 2100. One instant for all, so that they are found without a look at
/// what is due before.
pub(crate) const DUE_AT_MS: i64 = 4_102_444_800_000;

/// How far a job is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Job {
    /// As it is shown.
    pub(crate) body: JobBody,
    /// What it does.
    pub(crate) bulk: Bulk,
    /// The pages before this one are done.
    pub(crate) at: Position,
}

/// The payload of its task. Members that a later release adds are left unread, and lost at the next page.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    job: JobBody,
    #[serde(borrow)]
    request: &'a RawValue,
    /// Tasks put after this change are left alone.
    as_of: Option<u64>,
    /// The list that it is at.
    #[serde(default)]
    part: usize,
    /// A cursor of that list.
    after: Option<String>,
    /// Of a move: no task is put off beyond this instant, ms since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest_ms: Option<i64>,
}

/// The queue of the jobs.
pub(crate) fn queue() -> QueueName {
    QueueName::new(QUEUE).expect("a name")
}

/// The key of the job with this number.
pub(crate) fn key(id: u64) -> Key {
    Key::from_id(id)
}

impl Job {
    pub(crate) fn new(id: u64, bulk: Bulk, of: u64) -> Self {
        let body = JobBody {
            id,
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

    /// It is over for this reason, unless it was over before: the answer to its stop already said `stopped`.
    pub(crate) fn fail(&mut self, problem: Problem) {
        if self.is_running() {
            (self.body.state, self.body.error) = (JobState::Failed, Some(problem.detail));
        }
    }

    /// The put that keeps it.
    pub(crate) fn put(&self) -> Put {
        let Bulk { queue: of, work, as_of } = &self.bulk;
        let request = String::from_utf8(work.to_json()).expect("JSON is text");
        let request = RawValue::from_string(request).expect("it was written as JSON");
        let filter = work.filter(self.at.part).unwrap_or_default();
        let latest = match work {
            Work::Move(moving) => moving.latest,
            Work::Cancel(_) | Work::Purge(_) => None,
        };
        let kept = Kept {
            job: self.body.clone(),
            request: &request,
            as_of: as_of.map(|seq| seq.0),
            part: self.at.part,
            after: self.at.after.map(|place| Cursor { place }.write(of, &filter)),
            latest_ms: latest.map(Timestamp::as_ms),
        };
        let payload = serde_json::to_vec(&kept).expect("plain members");
        let body = Body { payload, content_type: "application/json".into(), ..Body::default() };
        let due_at = Timestamp::from_ms(DUE_AT_MS).expect("after 1970");
        Put { body, ..Put::new(&queue(), key(self.body.id)) }.at(due_at)
    }

    /// Reads what [`put`](Self::put) wrote; `None` for anything else.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let Kept { job, request, as_of, part, after, latest_ms } = serde_json::from_slice(payload).ok()?;
        let queue = QueueName::new(&job.queue).ok()?;
        let latest = latest_ms.and_then(Timestamp::from_ms);
        let work = Work::read(job.action, request.get().as_bytes(), latest)?;
        let filter = work.filter(part)?;
        let after = match after {
            None => None,
            Some(text) => Some(Cursor::read(&text, &queue, &filter)?.place),
        };
        let bulk = Bulk { queue, work, as_of: as_of.map(Seq) };
        Some(Self { body: job, bulk, at: Position { part, after } })
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_api::{BulkCancelBody, BulkMoveBody, MoveTo, PurgeBody, TaskFilter};
    use tickwheel_queue::Place;

    use super::*;
    use crate::service::work::Move;

    fn bulk(work: Work) -> Bulk {
        Bulk { queue: QueueName::new("shop/close").expect("a name"), work, as_of: Some(Seq(41)) }
    }

    fn filter() -> TaskFilter {
        TaskFilter { due_to_ms: Some(7), tag: Some("a \"quoted\" ü".to_owned()), ..TaskFilter::default() }
    }

    fn place() -> Option<Place> {
        let due_at = Timestamp::from_ms(5).expect("not negative");
        Some(Place { due_at, put_seq: Seq(3) })
    }

    #[test]
    fn a_job_is_read_as_it_was_kept() {
        let body = BulkCancelBody { filter: filter(), dry_run: false, revoke: true };
        let begun = Job::new(1_795_000_000_000, bulk(Work::Cancel(body)), 20_000);
        assert_eq!(Job::read(&begun.put().body.payload), Some(begun.clone()));
        let mut halfway = Job { at: Position { part: 0, after: place() }, ..begun };
        halfway.body.looked_at = 10_000;
        halfway.body.error = Some("why".to_owned());
        let payload = halfway.put().body.payload;
        assert_eq!(Job::read(&payload), Some(halfway));
        let text = String::from_utf8(payload).expect("text");
        for other in ["", "{}", "null", &text.replace("\"1-5-3-", "\"1-5-4-"), &text.replace("shop/", "-")] {
            assert_eq!(Job::read(other.as_bytes()), None, "{other}");
        }
    }

    /// Its last page was under way when it was stopped, and failed then.
    #[test]
    fn a_job_that_was_stopped_does_not_fail_any_more() {
        let purge = Work::Purge(PurgeBody { dry_run: false, revoke: false });
        let begun = Job::new(1, bulk(purge), 20_000);
        for (before, after) in [(JobState::Running, JobState::Failed), (JobState::Stopped, JobState::Stopped)]
        {
            let mut job = begun.clone();
            job.body.state = before;
            job.fail(Problem::internal("no page"));
            assert_eq!((job.body.state, job.body.error.is_some()), (after, after == JobState::Failed));
        }
    }

    #[test]
    fn so_are_a_move_and_a_purge() {
        let body = BulkMoveBody { filter: filter(), to: MoveTo::By(-5), dry_run: false, revoke: true };
        let moving = Move { body, latest: Timestamp::from_ms(9) };
        let mut job = Job::new(1, bulk(Work::Move(moving)), 20_000);
        job.at.after = place();
        job.body.skipped.leased = 3;
        assert_eq!(Job::read(&job.put().body.payload), Some(job));
        let purge = Work::Purge(PurgeBody { dry_run: true, revoke: true });
        let job = Job { at: Position { part: 1, after: place() }, ..Job::new(1, bulk(purge), 20_000) };
        assert_eq!(Job::read(&job.put().body.payload), Some(job.clone()));
        let beyond = Job { at: Position { part: 2, after: None }, ..job };
        assert_eq!(Job::read(&beyond.put().body.payload), None, "it has two lists");
    }

    /// What a server kept before there were moves.
    #[test]
    fn an_old_job_is_a_cancel() {
        let text = r#"{"job":{"id":1,"queue":"q","state":"running","dry_run":false,"of":9,"looked_at":9,"matched":7,"cancelled":6},"request":{"filter":{"tag":"vip"},"dry_run":false,"revoke":true},"as_of":41,"after":null}"#;
        let job = Job::read(text.as_bytes()).expect("a job");
        let Work::Cancel(body) = &job.bulk.work else { panic!("{job:?}") };
        assert_eq!((body.filter.tag.as_deref(), body.revoke, job.body.done), (Some("vip"), true, 6));
    }
}
