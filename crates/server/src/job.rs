//! A job as it is kept: a task of the queue `$jobs`, so that a job survives whatever tasks survive.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tickwheel_api::{BulkCancelBody, JobBody, JobState};
use tickwheel_queue::{Body, Key, Place, Put, QueueName, Seq, Timestamp};

use crate::bulk::Bulk;
use crate::cursor::Cursor;

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
    /// The pages up to here are done.
    pub(crate) after: Option<Place>,
}

/// The payload of its task. Members that a later release adds are left unread, and lost at the next page.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    job: JobBody,
    #[serde(borrow)]
    request: &'a RawValue,
    /// Tasks put after this change are left alone.
    as_of: Option<u64>,
    /// A cursor.
    after: Option<String>,
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
            state: JobState::Running,
            dry_run: bulk.body.dry_run,
            of,
            looked_at: 0,
            matched: 0,
            cancelled: 0,
            error: None,
        };
        Self { body, bulk, after: None }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.body.state == JobState::Running
    }

    /// The put that keeps it.
    pub(crate) fn put(&self) -> Put {
        let request = String::from_utf8(self.bulk.body.to_json()).expect("JSON is text");
        let request = RawValue::from_string(request).expect("it was written as JSON");
        let kept = Kept {
            job: self.body.clone(),
            request: &request,
            as_of: self.bulk.as_of.map(|seq| seq.0),
            after: self.after.map(|place| Cursor { place }.write(&self.bulk.queue, &self.bulk.body.filter)),
        };
        let payload = serde_json::to_vec(&kept).expect("plain members");
        let body = Body { payload, content_type: "application/json".into(), ..Body::default() };
        let due_at = Timestamp::from_ms(DUE_AT_MS).expect("after 1970");
        Put { body, ..Put::new(&queue(), key(self.body.id)) }.at(due_at)
    }

    /// Reads what [`put`](Self::put) wrote; `None` for anything else.
    pub(crate) fn read(payload: &[u8]) -> Option<Self> {
        let Kept { job, request, as_of, after } = serde_json::from_slice(payload).ok()?;
        let queue = QueueName::new(&job.queue).ok()?;
        let body = BulkCancelBody::parse(request.get().as_bytes()).ok()?;
        let after = match after {
            None => None,
            Some(text) => Some(Cursor::read(&text, &queue, &body.filter)?.place),
        };
        Some(Self { body: job, bulk: Bulk { queue, body, as_of: as_of.map(Seq) }, after })
    }
}

#[cfg(test)]
mod tests {
    use tickwheel_api::TaskFilter;

    use super::*;

    #[test]
    fn a_job_is_read_as_it_was_kept() {
        let filter = TaskFilter {
            due_to_ms: Some(7),
            tag: Some("a \"quoted\" ü".to_owned()),
            ..TaskFilter::default()
        };
        let body = BulkCancelBody { filter, dry_run: false, revoke: true };
        let bulk = Bulk { queue: QueueName::new("shop/close").expect("a name"), body, as_of: Some(Seq(41)) };
        let begun = Job::new(1_795_000_000_000, bulk, 20_000);
        assert_eq!(Job::read(&begun.put().body.payload), Some(begun.clone()));
        let due_at = Timestamp::from_ms(5).expect("not negative");
        let mut halfway = Job { after: Some(Place { due_at, put_seq: Seq(3) }), ..begun };
        halfway.body.looked_at = 10_000;
        halfway.body.error = Some("why".to_owned());
        let payload = halfway.put().body.payload;
        assert_eq!(Job::read(&payload), Some(halfway));
        let text = String::from_utf8(payload).expect("text");
        for other in ["", "{}", "null", &text.replace("\"1-5-3-", "\"1-5-4-"), &text.replace("shop/", "-")] {
            assert_eq!(Job::read(other.as_bytes()), None, "{other}");
        }
    }
}
