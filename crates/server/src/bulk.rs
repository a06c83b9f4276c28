//! `/v1/queues/{q}/cancel`: many tasks are cancelled at once, while the call waits or as a job.

use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use tickwheel_api::{BULK_MAX, BadRequest, BulkCancelAnswer, BulkCancelBody, Problem, TaskState, no_query};
use tickwheel_queue::{Cancelled, Key, Place, Queue, QueueName, Seq, TaskPage};

use crate::answer;
use crate::app::Shared;
use crate::body::JsonBytes;
use crate::header::IfMatch;
use crate::path::QueueAt;
use crate::problem::Refusal;
use crate::query::QueryText;
use crate::translate;

/// Tasks on a page, and cancels that go out together and share commits.
pub(crate) const PAGE: usize = 1_000;

/// A call looks at so many pages before a job takes over: about a second.
const PAGES_MAX: usize = 200;

/// A task that the filter found, as it was then.
type Found = (Key, Seq);

/// Which tasks, and what to do about them. Only those that were there at the start: what is put later is left alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bulk {
    pub(crate) queue: QueueName,
    pub(crate) body: BulkCancelBody,
    /// The last change when it began.
    pub(crate) as_of: Option<Seq>,
}

/// One page of it.
pub(crate) struct Step {
    pub(crate) found: Vec<Found>,
    pub(crate) looked_at: usize,
    pub(crate) next: Option<Place>,
}

impl Bulk {
    fn new(queue: QueueName, body: BulkCancelBody) -> Self {
        Self { queue, body, as_of: None }
    }

    /// What the next page has of it.
    pub(crate) async fn look(&mut self, queue: &Queue, after: Option<Place>) -> Result<Step, Problem> {
        let mut list = translate::list(&self.queue, &self.body.filter, PAGE, after);
        list.filter.put_until = self.as_of;
        let page = queue.list(list).await.map_err(|error| translate::unavailable(&error))?;
        let TaskPage { tasks, looked_at, next, as_of } = page;
        self.as_of.get_or_insert(as_of);
        // The key of a dead task may be another's by now.
        let keyed = tasks.into_iter().filter(|task| task.dead.is_none_or(|dead| !dead.keyless));
        Ok(Step { found: keyed.map(|task| (task.key, task.version)).collect(), looked_at, next })
    }

    /// Cancels these, if it is meant; how many it did.
    pub(crate) async fn cancel(&self, queue: &Queue, found: &[Found]) -> Result<u64, Problem> {
        let mut cancelled = 0;
        if self.body.dry_run {
            return Ok(cancelled);
        }
        for part in found.chunks(PAGE) {
            // Asked for together, so that they share commits.
            let cancel = |(key, version): &Found| {
                queue.cancel(translate::cancel(&self.queue, key, self.body.revoke, Some(*version)))
            };
            let asked: Vec<_> = part.iter().map(cancel).collect();
            for pending in asked {
                match pending.await {
                    Ok(Cancelled::Cancelled | Cancelled::Revoked) => cancelled += 1,
                    Err(error) => {
                        // That somebody has it, changed it or ended it is no failure of the whole.
                        if let tickwheel_queue::CancelError::Unavailable(why) = error {
                            return Err(broken_off(cancelled, translate::unavailable(&why)));
                        }
                    }
                }
            }
        }
        Ok(cancelled)
    }
}

/// Why it went no further. What was cancelled before that stays so.
fn broken_off(cancelled: u64, problem: Problem) -> Problem {
    match cancelled {
        0 => problem,
        _ => Problem::indeterminate(&format!("{cancelled} tasks were cancelled, then: {}", problem.detail)),
    }
}

/// `POST cancel`: cancels what a filter finds, or says how many there are.
pub(crate) async fn cancel(
    app: Shared,
    QueueAt(name): QueueAt,
    QueryText(query): QueryText,
    IfMatch(version): IfMatch,
    body: JsonBytes,
) -> Result<Response, Refusal> {
    no_query(&query)?;
    if version.is_some() {
        let hint = "leave it out; each task is cancelled in the version in which it is found";
        return Err(BadRequest::header("If-Match", "means nothing where many tasks are meant", hint).into());
    }
    let mut bulk = Bulk::new(name, BulkCancelBody::parse(&body)?);
    let (mut found, mut after) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let step = bulk.look(&app.queue, after).await?;
        found.extend(step.found);
        after = step.next;
        if after.is_none() || found.len() > BULK_MAX {
            break;
        }
    }
    if after.is_none() && found.len() <= BULK_MAX {
        let cancelled = bulk.cancel(&app.queue, &found).await?;
        let answer = BulkCancelAnswer { matched: found.len() as u64, cancelled };
        return Ok(answer::json(StatusCode::OK, &answer));
    }
    let view = app.queue.queue(&bulk.queue).await.map_err(|error| translate::unavailable(&error))?;
    let counts = view.counts;
    let of = if bulk.body.filter.state == Some(TaskState::Dead) { counts.dead } else { counts.live() };
    let job = app.jobs.start(bulk, of).await?;
    let mut response = answer::json(StatusCode::ACCEPTED, &job);
    let place = format!("/v1/jobs/{}", job.id);
    response
        .headers_mut()
        .insert(LOCATION, HeaderValue::from_str(&place).expect("digits are a header value"));
    Ok(response)
}
