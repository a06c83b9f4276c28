//! `GET /v1/queues/{q}/tasks`, `GET /v1/queues/{q}/dead` and `GET /v1/tasks`: tasks that are searched for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::response::Response;
use tickwheel_api::{BadRequest, LIST_LIMIT_MAX, ListQuery, TasksQuery};
use tickwheel_queue::{GetError, Key, ListQueues, QueueName, TaskCursor, TaskPage, TaskView};

use crate::access::refusal::Refusal;
use crate::access::tokens::Right;
use crate::base::aside::Steps;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::doors::http::stream;
use crate::service::caller::Caller;
use crate::service::permits::shares::Permit;
use crate::service::search::sieve::Sieve;
use crate::translate;
use crate::translate::cursor::Cursor;

handlers! {
    ListTasks => list,
    ListDead => list_dead,
    TasksOfKey => of_key,
}

/// The number of tasks that the queue may look at for one page. Then the page ends with a cursor, full or not.
const LOOKED_AT_MAX: usize = 100_000;
/// The number of tasks that are looked at for a page with a text.
const SCANNED_MAX: usize = 20_000;
/// The time after which a page ends, full or not. The queue goes through the tasks of all queues.
const TIME_MAX: Duration = Duration::from_millis(200);
/// The largest number of tasks in one question to the queue.
const ASKED_MAX: usize = 1_000;
/// The largest number of questions to the queue for one page. The queue goes through the tasks of all queues, so an
/// answer may have no task of this one.
const ROUNDS_MAX: usize = 200;

/// The largest number of queues in which one call looks for a key, and the number of look-ups that are sent together.
const QUEUES_MAX: usize = 10_000;
const QUEUES_TOGETHER: usize = 16;
/// The payloads (bytes) after which a page ends, full or not, and a call looks into no more queues.
const PAYLOADS_MAX: usize = 16 << 20;

/// `GET` on the collection: one page of the live tasks, in the order of `due_at`.
async fn list(call: Call) -> Result<Response, Refusal> {
    page(&call.caller, call.queue(), ListQuery::parse(call.query())?).await
}

/// `GET` on the dead tasks: one page. The task that will be forgotten first comes first.
async fn list_dead(call: Call) -> Result<Response, Refusal> {
    page(&call.caller, call.queue(), ListQuery::parse_dead(call.query())?).await
}

async fn page(caller: &Caller, queue: &QueueName, query: ListQuery) -> Result<Response, Refusal> {
    caller.may(Right::Read, queue)?;
    let filter = &query.filter;
    let after = match &query.cursor {
        Some(text) => Some(Cursor::read(text, queue, filter).ok_or_else(foreign_cursor)?.0),
        None => None,
    };
    let page = match caller.of_filter(queue, filter).await? {
        Some(found) => Page { tasks: found.into_iter().collect(), ..Page::default() },
        None => searched(caller, queue, &query, after).await?,
    };
    let next = page.next.map(|next| Cursor(next).write(queue, filter));
    let next = next.map_or("null".to_owned(), |next| format!("\"{next}\""));
    let looked_at = page.looked_at.map_or(String::new(), |tasks| format!(",\"looked_at\":{tasks}"));
    let lax = caller.lax_json();
    let rest = format!(",\"next_cursor\":{next}{looked_at}");
    // Also an answer without payloads has them in memory.
    let held = caller.hold(page.tasks.iter().map(payload_bytes).sum())?;
    let answer = match query.payloads {
        true => stream::tasks(page.tasks, payload_bytes, translate::task_body, lax, rest).await,
        false => stream::tasks(page.tasks, |_| 0, translate::task_head, lax, rest).await,
    };
    Ok(answer::holding(answer, held))
}

fn payload_bytes(task: &TaskView) -> usize {
    task.body.payload_bytes()
}

/// The tasks of a page.
#[derive(Default)]
struct Page {
    tasks: Vec<TaskView>,
    /// Where the next page begins.
    next: Option<TaskCursor>,
    /// The number of tasks that were looked at, if texts were searched for.
    looked_at: Option<usize>,
}

/// Searches until the page is full, or until it has looked at enough.
async fn searched(
    caller: &Caller,
    queue: &QueueName,
    query: &ListQuery,
    mut after: Option<TaskCursor>,
) -> Result<Page, Refusal> {
    let (filter, limit) = (&query.filter, query.limit);
    let (sieve, begun, mut steps) = (Sieve::of(filter), Instant::now(), Steps::default());
    let (mut tasks, mut payloads, mut looked_at, mut asked) = (Vec::new(), 0, 0, limit);
    for _ in 0..ROUNDS_MAX {
        let page = caller.list(translate::list(queue, filter, asked, after))?.await?;
        let TaskPage { tasks: found, cursors, looked_at: looked, next, .. } = page;
        looked_at += looked;
        after = next;
        let last = found.len().saturating_sub(1);
        for (at, (task, cursor)) in found.into_iter().zip(cursors).enumerate() {
            if !sieve.passes(&task, &mut steps).await {
                continue;
            }
            payloads += payload_bytes(&task);
            tasks.push(task);
            if tasks.len() == limit || payloads >= PAYLOADS_MAX {
                // The next page begins behind this task, or behind all that were looked at.
                after = if at < last { Some(cursor) } else { next };
                break;
            }
        }
        let looked_at_max = if sieve.is_open() { LOOKED_AT_MAX } else { SCANNED_MAX };
        let is_enough = looked_at >= looked_at_max || payloads >= PAYLOADS_MAX || begun.elapsed() >= TIME_MAX;
        if after.is_none() || tasks.len() >= limit || is_enough {
            break;
        }
        // Where few tasks match, longer questions find more of them.
        asked = (2 * asked).min(ASKED_MAX);
    }
    Ok(Page { tasks, next: after, looked_at: Some(looked_at).filter(|_| !sieve.is_open()) })
}

/// `GET /v1/tasks`: the tasks of one key in the queues of the caller's scope.
async fn of_key(call: Call) -> Result<Response, Refusal> {
    let query = TasksQuery::parse(call.query())?;
    let key = Key::new(&query.key).map_err(|error| translate::name_refused(&error))?;
    let caller = &call.caller;
    // The permit is held until the client has taken the tasks.
    let permit = Arc::new(caller.app().admission.slots().searches.enter(caller.producer()).await?);
    let (queues, mut truncated) = queues_of(caller).await?;
    let (mut tasks, mut payloads, mut steps) = (Vec::new(), 0, Steps::default());
    for together in queues.chunks(QUEUES_TOGETHER) {
        if tasks.len() >= LIST_LIMIT_MAX || payloads > PAYLOADS_MAX {
            truncated = true;
            break;
        }
        // The look-ups are sent together, so that the store reads for them together.
        let mut asked = Vec::with_capacity(together.len());
        for queue in together {
            asked.push(caller.get(translate::get(queue, &key))?);
            steps.did(0).await;
        }
        for pending in asked {
            match pending.await {
                Ok(task) => {
                    payloads += payload_bytes(&task);
                    tasks.push((task, Arc::clone(&permit)));
                }
                Err(GetError::Unavailable(why)) => return Err(translate::unavailable(&why).into()),
                Err(_) => {}
            }
            steps.did(0).await;
        }
    }
    truncated |= tasks.len() > LIST_LIMIT_MAX;
    tasks.truncate(LIST_LIMIT_MAX);
    let rest = format!(",\"truncated\":{truncated}");
    let held = caller.hold(payloads)?;
    let bytes = |(task, _): &Found| payload_bytes(task);
    let answer =
        stream::tasks(tasks, bytes, |(task, _)| translate::task_body(task), caller.lax_json(), rest).await;
    Ok(answer::holding(answer, held))
}

/// A task of a search, with the permit of the search.
type Found = (TaskView, Arc<Permit>);

/// The queues that the caller may see, by name, and whether there are more than one call looks into.
async fn queues_of(caller: &Caller) -> Result<(Vec<QueueName>, bool), Refusal> {
    let mut queues = Vec::new();
    for prefix in caller.grant().prefixes() {
        let list = ListQueues { prefix: prefix.into(), ..ListQueues::default() };
        let mut pages = caller.queues(list)?;
        while let Some(page) = pages.next().await? {
            queues.extend(page.into_iter().map(|counts| counts.queue));
            if queues.len() > QUEUES_MAX {
                queues.truncate(QUEUES_MAX);
                return Ok((queues, true));
            }
        }
    }
    Ok((queues, false))
}

fn foreign_cursor() -> BadRequest {
    BadRequest::parameter(
        "cursor",
        "is not a cursor of this list",
        "send the `next_cursor` of the page before as it is, with the same queue and filter",
    )
}
