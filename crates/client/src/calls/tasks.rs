//! Tasks, one by one, in batches and in pages.

use hyper::Method;
use hyper::header::HeaderName;
use tickwheel_api::path::{queue_path, task_path};
use tickwheel_api::{
    BatchLine, BatchResult, CancelAnswer, CancelOutcome, DeadGroupsBody, ListQuery, PatchBody, PutAnswer,
    PutBody, PutQuery, RedriveAnswer, RedriveBody, RevokeQuery, StoryBody, TaskBody, TaskFilter, TasksOfKey,
    TasksPage, TasksQuery,
};

use crate::call::{Call, Request, calls};
use crate::{Client, ClientError, blocking};

/// 500 lines in one request. With this limit a batch of any length needs little memory at one time.
const BATCH_LINES_MAX: usize = 500;

/// The answer to a put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Whether the task is new. If not, it replaced the live task of this key.
    pub created: bool,
    /// The task.
    pub task: PutAnswer,
}

calls! {
    /// Schedules a task under a key.
    ///
    /// # Errors
    ///
    /// As a problem: 409 if the key is live (`mode=create`) or leased, 404 if it is not live (`mode=replace`), 412 if the task has another
    /// version than `if_match`; and the errors of every call, see [`ClientError`].
    fn put(queue: &str, key: &str, body: &PutBody, query: PutQuery, if_match: Option<u64>) -> Stored {
        let request = Request::new(Method::PUT, task_path(queue, key)).query(&query.to_query());
        stored(request.if_match(if_match).json(body.to_json()))
    }

    /// Schedules a task under a key that the server makes. Two calls make two tasks.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    fn post(queue: &str, body: &PutBody) -> Stored {
        stored(Request::post(queue_path(queue, "tasks")).json(body.to_json()))
    }

    /// Schedules a task under this key once. If the same call is sent again, it makes no second task, whatever happened to the first one.
    ///
    /// # Errors
    ///
    /// As a problem: 404 `done` if the work of the task is done already; see [`ClientError`].
    fn post_once(queue: &str, key: &str, body: &PutBody) -> Stored {
        let once = HeaderName::from_static("idempotency-key");
        let request = Request::post(queue_path(queue, "tasks")).header(once, format!("\"{key}\""));
        stored(request.json(body.to_json()).safe_to_repeat())
    }

    /// Returns a task.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if no live task has this key; see [`ClientError`].
    fn get(queue: &str, key: &str) -> TaskBody { Request::get(task_path(queue, key)).answer() }

    /// Returns what happened to a task, what comes, and why it does not run now.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if no task has this key; see [`ClientError`].
    fn story(queue: &str, key: &str) -> StoryBody { Request::get(task_path(queue, key) + "/story").answer() }

    /// Reschedules a task or changes its payload.
    ///
    /// # Errors
    ///
    /// As a problem: 404, 409 or 412, as for [`put`](Self::put); see [`ClientError`].
    fn patch(queue: &str, key: &str, body: &PatchBody, query: RevokeQuery, if_match: Option<u64>) -> PutAnswer {
        let request = Request::new(Method::PATCH, task_path(queue, key)).query(&query.to_query());
        request.if_match(if_match).json(body.to_json()).answer()
    }

    /// Cancels a task. Each of the five outcomes is an answer and not an error.
    ///
    /// # Errors
    ///
    /// As a problem: 412 if the task has another version than `if_match`; see [`ClientError`].
    fn cancel(queue: &str, key: &str, query: RevokeQuery, if_match: Option<u64>) -> CancelOutcome {
        let request = Request::new(Method::DELETE, task_path(queue, key)).query(&query.to_query());
        request.if_match(if_match).end(|answer| match answer {
            Err(ClientError::Problem(problem)) => problem.result.ok_or(ClientError::Problem(problem)),
            answer => Ok(answer?.body::<CancelAnswer>()?.result),
        })
    }

    /// Makes a scheduled task due now. One that is ready is returned as it stands.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if no live task has this key, 409 if a worker has it or it is dead, 412 if the task has another version than `if_match`;
    /// see [`ClientError`].
    fn run(queue: &str, key: &str, if_match: Option<u64>) -> PutAnswer {
        Request::post(task_path(queue, key) + "/run").if_match(if_match).answer()
    }

    /// Takes a leased task from its worker. It is ready at once, and the attempt counts.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if no live task has this key, 409 if no worker has it, 412 if the task has another version than `if_match`; see
    /// [`ClientError`].
    fn release(queue: &str, key: &str, if_match: Option<u64>) -> PutAnswer {
        Request::post(task_path(queue, key) + "/release").if_match(if_match).answer()
    }

    /// Redrives dead tasks: those that `body` names one by one, or all. For [`RedriveBody::Key`] and [`RedriveBody::Id`] the answer has one
    /// result, too. [`RedriveBody::Filter`] has another answer, see [`redrive_many`](Self::redrive_many).
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    fn redrive(queue: &str, body: &RedriveBody) -> RedriveAnswer {
        let several = match body {
            RedriveBody::Key(key) => RedriveBody::Keys(vec![key.clone()]),
            RedriveBody::Id(id) => RedriveBody::Ids(vec![*id]),
            other => other.clone(),
        };
        Request::post(queue_path(queue, "dead/redrive")).json(several.to_json()).answer()
    }

    /// One page of a queue's tasks.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    fn list(queue: &str, query: &ListQuery) -> TasksPage {
        Request::get(queue_path(queue, "tasks")).query(&query.to_query()).answer()
    }

    /// One page of the dead tasks, with the reasons. The state of the filter is ignored.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    fn dead(queue: &str, query: &ListQuery) -> TasksPage {
        let filter = TaskFilter { state: None, ..query.filter.clone() };
        let query = ListQuery { filter, ..query.clone() };
        Request::get(queue_path(queue, "dead")).query(&query.to_query()).answer()
    }

    /// The newest dead tasks, grouped by their causes of death.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    fn dead_groups(queue: &str) -> DeadGroupsBody { Request::get(queue_path(queue, "dead/groups")).answer() }

    /// The live or dead tasks of one key in all queues that the token may see.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    fn tasks_of_key(key: &str) -> TasksOfKey {
        let query = TasksQuery { key: key.to_owned() };
        Request::get("/v1/tasks").query(&query.to_query()).answer()
    }
}

impl Client {
    /// Sends operations on one queue and returns their results, in order. They are not atomic: an error of one line is the result of this
    /// line. Many lines are sent in several requests of 500.
    ///
    /// # Errors
    ///
    /// See [`ClientError`]; the error is about the request that failed. The lines of earlier requests have taken effect.
    pub async fn batch(&self, queue: &str, lines: &[BatchLine]) -> Result<Vec<BatchResult>, ClientError> {
        let mut results = Vec::with_capacity(lines.len());
        for lines in lines.chunks(BATCH_LINES_MAX) {
            results.extend(self.exchange.send(part(queue, lines)).await?);
        }
        Ok(results)
    }
}

impl blocking::Client {
    /// Sends operations on one queue and returns their results, in order: see [`Client::batch`].
    ///
    /// # Errors
    ///
    /// As for [`Client::batch`].
    pub fn batch(&self, queue: &str, lines: &[BatchLine]) -> Result<Vec<BatchResult>, ClientError> {
        self.block_on(self.client.batch(queue, lines))
    }
}

/// One request of a batch.
fn part(queue: &str, lines: &[BatchLine]) -> Call<Vec<BatchResult>> {
    let mut body = Vec::new();
    for line in lines {
        body.extend_from_slice(&line.to_json());
        body.push(b'\n');
    }
    let count = lines.len();
    Request::post(queue_path(queue, "batch")).ndjson(body).read(move |answer| {
        let found: Vec<BatchResult> = answer.lines()?;
        if found.len() == count {
            return Ok(found);
        }
        let what = format!("{} results for a batch of {count}", found.len());
        Err(ClientError::BadAnswer { status: Some(answer.status), what })
    })
}

fn stored(request: Request) -> Call<Stored> {
    request.read(|answer| Ok(Stored { created: answer.status == 201, task: answer.body()? }))
}
