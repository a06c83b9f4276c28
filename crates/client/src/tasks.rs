//! Tasks, one by one, in batches and in pages.

use crate::exchange::{Answer, Call};
use crate::url::{queue_path, task_path};
use crate::{Client, ClientError, Stored};
use tickwheel_api::{
    BatchLine, BatchResult, CancelAnswer, CancelOutcome, CancelQuery, ListQuery, PatchBody, PatchQuery,
    PutAnswer, PutBody, PutQuery, RedriveAnswer, RedriveBody, TaskBody, TaskFilter, TasksPage, etag,
};

/// 500 lines in one request. A server answers while it reads, and this client reads only once it has sent
/// everything: what it has not read yet must fit into the buffers of the connection, or both would wait for
/// each other.
const BATCH_LINES_MAX: usize = 500;

impl Client {
    /// Schedules a task under a key.
    ///
    /// # Errors
    ///
    /// As a problem: 409 if the key is live (`mode=create`) or leased, 404 if it is not live
    /// (`mode=replace`), 412 if it has another version than `if_match`; and what every call can meet, see
    /// [`ClientError`].
    pub fn put(
        &self,
        queue: &str,
        key: &str,
        body: &PutBody,
        query: PutQuery,
        if_match: Option<u64>,
    ) -> Result<Stored, ClientError> {
        let call = Call::new("PUT", task_path(queue, key))
            .query(&query.to_query())
            .if_match(if_match.map(etag))
            .json(body.to_json());
        stored(&self.exchange.send(call)?)
    }

    /// Schedules a task under a key of the server's making. Sending it twice makes two tasks.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn post(&self, queue: &str, body: &PutBody) -> Result<Stored, ClientError> {
        let call = Call::new("POST", queue_path(queue, "tasks")).json(body.to_json());
        stored(&self.exchange.send(call)?)
    }

    /// Schedules a task under this key, once: the same call again makes no second task, whatever became of the first.
    ///
    /// # Errors
    ///
    /// As a problem: 404 `done` if its work is done already; see [`ClientError`].
    pub fn post_once(&self, queue: &str, key: &str, body: &PutBody) -> Result<Stored, ClientError> {
        let call = Call::new("POST", queue_path(queue, "tasks")).idempotency_key(key).json(body.to_json());
        stored(&self.exchange.send(call.twice_is_once())?)
    }

    /// Looks at a task.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if no live task has this key; see [`ClientError`].
    pub fn get(&self, queue: &str, key: &str) -> Result<TaskBody, ClientError> {
        self.exchange.send(Call::new("GET", task_path(queue, key)))?.body()
    }

    /// Reschedules a task or changes its payload.
    ///
    /// # Errors
    ///
    /// As a problem: 404, 409 or 412, as for [`put`](Self::put); see [`ClientError`].
    pub fn patch(
        &self,
        queue: &str,
        key: &str,
        body: &PatchBody,
        query: PatchQuery,
        if_match: Option<u64>,
    ) -> Result<PutAnswer, ClientError> {
        let call = Call::new("PATCH", task_path(queue, key))
            .query(&query.to_query())
            .if_match(if_match.map(etag))
            .json(body.to_json());
        self.exchange.send(call)?.body()
    }

    /// Cancels a task. Each of the five outcomes is an answer, not an error.
    ///
    /// # Errors
    ///
    /// As a problem: 412 if the task has another version than `if_match`; see [`ClientError`].
    pub fn cancel(
        &self,
        queue: &str,
        key: &str,
        query: CancelQuery,
        if_match: Option<u64>,
    ) -> Result<CancelOutcome, ClientError> {
        let call =
            Call::new("DELETE", task_path(queue, key)).query(&query.to_query()).if_match(if_match.map(etag));
        match self.exchange.send(call) {
            Ok(answer) => Ok(answer.body::<CancelAnswer>()?.result),
            Err(ClientError::Problem(problem)) => problem.result.ok_or(ClientError::Problem(problem)),
            Err(error) => Err(error),
        }
    }

    /// Gives dead tasks another life, those that `body` names one by one or all. For [`RedriveBody::Key`] and [`RedriveBody::Id`] the
    /// answer has one result, too.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn redrive(&self, queue: &str, body: &RedriveBody) -> Result<RedriveAnswer, ClientError> {
        let several = match body {
            RedriveBody::Key(key) => RedriveBody::Keys(vec![key.clone()]),
            RedriveBody::Id(id) => RedriveBody::Ids(vec![*id]),
            other => other.clone(),
        };
        let call = Call::new("POST", queue_path(queue, "dead/redrive")).json(several.to_json());
        self.exchange.send(call)?.body()
    }

    /// Sends operations on one queue and returns their results, in order. They are not atomic: an error of
    /// one line is that line's result. Many lines go in several requests.
    ///
    /// # Errors
    ///
    /// See [`ClientError`]. The lines before the one at which it ended may have taken effect.
    pub fn batch(&self, queue: &str, lines: &[BatchLine]) -> Result<Vec<BatchResult>, ClientError> {
        let mut results = Vec::with_capacity(lines.len());
        for lines in lines.chunks(BATCH_LINES_MAX) {
            let mut body = Vec::new();
            for line in lines {
                body.extend_from_slice(&line.to_json());
                body.push(b'\n');
            }
            let answer = self.exchange.send(Call::new("POST", queue_path(queue, "batch")).ndjson(body))?;
            let found: Vec<BatchResult> = answer.lines()?;
            if found.len() != lines.len() {
                let what = format!("{} results for a batch of {}", found.len(), lines.len());
                return Err(ClientError::BadAnswer { status: Some(answer.status), what });
            }
            results.extend(found);
        }
        Ok(results)
    }

    /// One page of a queue's tasks.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn list(&self, queue: &str, query: &ListQuery) -> Result<TasksPage, ClientError> {
        self.exchange.send(Call::new("GET", queue_path(queue, "tasks")).query(&query.to_query()))?.body()
    }

    /// One page of the tasks that were given up, with their reasons; the filter's state is not looked at.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn dead(&self, queue: &str, query: &ListQuery) -> Result<TasksPage, ClientError> {
        let filter = TaskFilter { state: None, ..query.filter.clone() };
        let query = ListQuery { filter, ..query.clone() };
        self.exchange.send(Call::new("GET", queue_path(queue, "dead")).query(&query.to_query()))?.body()
    }
}

fn stored(answer: &Answer) -> Result<Stored, ClientError> {
    Ok(Stored { created: answer.status == 201, task: answer.body()? })
}
