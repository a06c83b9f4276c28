//! A small blocking HTTP client over the types of this crate: one method for each call of the API.
//!
//! It sends each call once, unless it is told to try again ([`Client::with_retries`]): then what had no effect is sent again, and what may have
//! had one only if twice is as good as once: a put is not, for its task may be done by then, and the second would make another;
//! [`Client::post_once`] is. An ack whose answer was lost answers `expired` the second time, so that is left to the caller, too.

mod error;
mod exchange;
mod retries;
mod url;

pub use error::ClientError;
pub use retries::Retries;

use crate::{
    AckBody, AdvanceBody, BatchLine, BatchResult, BulkCancelAnswer, BulkCancelBody, BulkMoveAnswer,
    BulkMoveBody, CancelAnswer, CancelOutcome, CancelQuery, DeleteQueueAnswer, DeleteScheduleAnswer,
    DrainBody, ExtendBody, ForecastBody, ForecastQuery, JobBody, JobsBody, LeaseBody, LeasedTask,
    LeasedTasks, ListQuery, NackBody, NowBody, PatchBody, PatchQuery, PauseBody, PreviewBody, PreviewQuery,
    PurgeAnswer, PurgeBody, PutAnswer, PutBody, PutQuery, QueueBody, QueueCounts, QueuesBody, QueuesQuery,
    RedriveAnswer, RedriveBody, ScheduleBody, ScheduleSpec, SchedulesPage, SchedulesQuery, SettingsBody,
    TaskBody, TaskFilter, TasksPage, TokenResult, TokenResults, TraceContext, etag,
};
use exchange::{Answer, Call, Exchange};
use serde::de::DeserializeOwned;
use std::time::Duration;
use url::{segment, server_place};

/// Where a server listens if nobody says otherwise.
pub const SERVER_URL_DEFAULT: &str = "http://127.0.0.1:8463";

/// 30 s for one call: a healthy server answers in milliseconds, one on a busy disk in a few seconds.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// 10 minutes for a step of the virtual clock, which may fire millions of tasks before it answers.
const ADVANCE_TIMEOUT: Duration = Duration::from_secs(600);
/// 500 lines in one request. A server answers while it reads, and this client reads only once it has sent
/// everything: what it has not read yet must fit into the buffers of the connection, or both would wait for
/// each other.
const BATCH_LINES_MAX: usize = 500;

/// A connection to one server. Cloning is cheap, and clones share the open connections.
///
/// Every method sends one request and returns what the server said, or a [`ClientError`]. Queue names and
/// keys are given as they are; the client percent-encodes them.
///
/// ```no_run
/// use tickwheel_api::client::{Client, SERVER_URL_DEFAULT};
/// use tickwheel_api::{Due, LeaseBody, PayloadBody, PutBody, PutQuery};
///
/// let client = Client::new(SERVER_URL_DEFAULT)?;
/// let payload = PayloadBody::json(br#"{"order":1}"#.to_vec());
/// let body = PutBody { due: Due::After(1_800_000), payload, ..PutBody::default() };
/// client.put("close", "order/1", &body, PutQuery::default(), None)?;
/// for task in client.lease("close", &LeaseBody { wait_ms: 20_000, ..LeaseBody::default() })? {
///     client.ack("close", vec![task.token])?;
/// }
/// # Ok::<(), tickwheel_api::client::ClientError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    exchange: Exchange,
}

/// What a put did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Whether the task is new; else it replaced the live one of that key.
    pub created: bool,
    /// The task.
    pub task: PutAnswer,
}

impl Client {
    /// A client of the server at this URL, such as [`SERVER_URL_DEFAULT`] or `http://[::1]:8463`. Nothing is
    /// sent yet.
    ///
    /// # Errors
    ///
    /// [`ClientError::BadUrl`] for anything but `http://HOST[:PORT]` and `https://HOST[:PORT]`.
    pub fn new(server_url: &str) -> Result<Self, ClientError> {
        Ok(Self { exchange: Exchange::new(server_place(server_url)?) })
    }

    /// Sends this token with each request, for a server that wants one.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.exchange.set_token(token);
        self
    }

    /// Sends calls again where that is safe; blocks in between.
    #[must_use]
    pub fn with_retries(mut self, retries: Retries) -> Self {
        self.exchange.set_retries(retries);
        self
    }

    /// What is put from now on is traced by this: it comes back with the task, to whoever leases it.
    #[must_use]
    pub fn with_trace(mut self, trace: TraceContext) -> Self {
        self.exchange.set_trace(trace);
        self
    }

    /// Trusts a server over TLS whose certificate comes from one of these roots, in PEM, or is one of them. Without this the roots of
    /// Mozilla are trusted, as of the day this was built.
    ///
    /// # Errors
    ///
    /// [`ClientError::BadCertificates`].
    pub fn with_roots(mut self, pem: &[u8]) -> Result<Self, ClientError> {
        self.exchange.set_roots(pem)?;
        Ok(self)
    }

    /// The `HOST:PORT` of the server.
    pub fn address(&self) -> &str {
        self.exchange.address()
    }

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

    /// Cancels all tasks that a filter finds. `Err` in the answer: there are too many to wait for, and a job does it, see [`job`](Self::job).
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn cancel_many(
        &self,
        queue: &str,
        body: &BulkCancelBody,
    ) -> Result<Result<BulkCancelAnswer, JobBody>, ClientError> {
        self.many(queue, "cancel", body.to_json())
    }

    /// Gives all tasks that a filter finds another time. `Err` in the answer: there are too many to wait for, and a job does it, see
    /// [`job`](Self::job).
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn move_many(
        &self,
        queue: &str,
        body: &BulkMoveBody,
    ) -> Result<Result<BulkMoveAnswer, JobBody>, ClientError> {
        self.many(queue, "move", body.to_json())
    }

    /// Removes all tasks of a queue, live and dead; its settings and schedules stay. `Err` in the answer: there are too many to wait for,
    /// and a job does it, see [`job`](Self::job).
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn purge(&self, queue: &str, body: PurgeBody) -> Result<Result<PurgeAnswer, JobBody>, ClientError> {
        self.many(queue, "purge", body.to_json())
    }

    fn many<A: DeserializeOwned>(
        &self,
        queue: &str,
        verb: &str,
        body: Vec<u8>,
    ) -> Result<Result<A, JobBody>, ClientError> {
        let call = Call::new("POST", queue_path(queue, verb)).json(body).timeout(ADVANCE_TIMEOUT);
        let answer = self.exchange.send(call)?;
        if answer.status == 202 { Ok(Err(answer.body()?)) } else { Ok(Ok(answer.body()?)) }
    }

    /// Forgets a queue that has no tasks and no schedules, with its settings.
    ///
    /// # Errors
    ///
    /// As a problem: 409 with the counts while it has some; see [`ClientError`].
    pub fn delete_queue(&self, queue: &str) -> Result<DeleteQueueAnswer, ClientError> {
        self.exchange.send(Call::new("DELETE", self::queue(queue)).twice_is_once())?.body()
    }

    /// The jobs under way and the last that are over, the newest first.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn jobs(&self) -> Result<Vec<JobBody>, ClientError> {
        Ok(self.exchange.send(Call::new("GET", "/v1/jobs".to_owned()))?.body::<JobsBody>()?.jobs)
    }

    /// How a job goes.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if there is none with this number; see [`ClientError`].
    pub fn job(&self, id: u64) -> Result<JobBody, ClientError> {
        self.exchange.send(Call::new("GET", format!("/v1/jobs/{id}")))?.body()
    }

    /// Stops a job; what it has done stays.
    ///
    /// # Errors
    ///
    /// As for [`job`](Self::job).
    pub fn stop_job(&self, id: u64) -> Result<JobBody, ClientError> {
        self.exchange.send(Call::new("DELETE", format!("/v1/jobs/{id}")))?.body()
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

    /// Takes ready tasks to work on, empty if none was ready in time. Blocks for as long as the body says to
    /// wait.
    ///
    /// # Errors
    ///
    /// See [`ClientError`]. After [`NoAnswer`](ClientError::NoAnswer) tasks may be leased to nobody; they
    /// come back when their lease ends.
    pub fn lease(&self, queue: &str, body: &LeaseBody) -> Result<Vec<LeasedTask>, ClientError> {
        let call = Call::new("POST", queue_path(queue, "lease"))
            .twice_is_once()
            .json(body.to_json())
            .timeout(CALL_TIMEOUT + Duration::from_millis(body.wait_ms));
        Ok(self.exchange.send(call)?.body::<LeasedTasks>()?.tasks)
    }

    /// Says that the work of these leases is done. One result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn ack(&self, queue: &str, tokens: Vec<String>) -> Result<Vec<TokenResult>, ClientError> {
        let call = Call::new("POST", queue_path(queue, "ack")).json(AckBody { tokens }.to_json());
        self.tokens(call.twice_is_once())
    }

    /// Gives leases back. One result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn nack(&self, queue: &str, body: &NackBody) -> Result<Vec<TokenResult>, ClientError> {
        self.tokens(Call::new("POST", queue_path(queue, "nack")).json(body.to_json()))
    }

    /// Keeps leases for longer. One result for each token, in order.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn extend(&self, queue: &str, body: &ExtendBody) -> Result<Vec<TokenResult>, ClientError> {
        let call = Call::new("POST", queue_path(queue, "extend")).json(body.to_json());
        self.tokens(call.twice_is_once())
    }

    fn tokens(&self, call: Call) -> Result<Vec<TokenResult>, ClientError> {
        Ok(self.exchange.send(call)?.body::<TokenResults>()?.results)
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

    /// All queues and how many tasks each has.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn queues(&self) -> Result<Vec<QueueCounts>, ClientError> {
        Ok(self.list_queues(&QueuesQuery::default())?.queues)
    }

    /// The queues that are asked for, all of them or one page, and how many tasks each has.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn list_queues(&self, query: &QueuesQuery) -> Result<QueuesBody, ClientError> {
        self.exchange.send(Call::new("GET", "/v1/queues".to_owned()).query(&query.to_query()))?.body()
    }

    /// One queue: its tasks by state and its settings. One that was never used has no tasks and is no error.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn queue(&self, queue: &str) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("GET", self::queue(queue)))?.body()
    }

    /// Lays down what is to be done again and again. One that stands like this already is left alone.
    ///
    /// # Errors
    ///
    /// As a problem: 400 for an expression, a zone or a time that cannot be used, 412 if it has another version than `if_match`; see
    /// [`ClientError`].
    pub fn put_schedule(
        &self,
        queue: &str,
        name: &str,
        spec: &ScheduleSpec,
        if_match: Option<u64>,
    ) -> Result<ScheduleBody, ClientError> {
        let call =
            Call::new("PUT", schedule_path(queue, name)).if_match(if_match.map(etag)).json(spec.to_json());
        self.exchange.send(call.twice_is_once())?.body()
    }

    /// Looks at a schedule.
    ///
    /// # Errors
    ///
    /// As a problem: 404 if there is none of this name; see [`ClientError`].
    pub fn schedule(&self, queue: &str, name: &str) -> Result<ScheduleBody, ClientError> {
        self.exchange.send(Call::new("GET", schedule_path(queue, name)))?.body()
    }

    /// Gives a schedule up. The tasks that it has made stay.
    ///
    /// # Errors
    ///
    /// As for [`put_schedule`](Self::put_schedule), and 404 if there is none of this name.
    pub fn delete_schedule(
        &self,
        queue: &str,
        name: &str,
        if_match: Option<u64>,
    ) -> Result<DeleteScheduleAnswer, ClientError> {
        let call = Call::new("DELETE", schedule_path(queue, name)).if_match(if_match.map(etag));
        self.exchange.send(call)?.body()
    }

    /// One page of the schedules of a queue.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn schedules(&self, queue: &str, query: &SchedulesQuery) -> Result<SchedulesPage, ClientError> {
        self.exchange.send(Call::new("GET", queue_path(queue, "schedules")).query(&query.to_query()))?.body()
    }

    /// One page of the schedules of all queues that the token may know of.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn all_schedules(&self, query: &SchedulesQuery) -> Result<SchedulesPage, ClientError> {
        self.exchange.send(Call::new("GET", "/v1/schedules".to_owned()).query(&query.to_query()))?.body()
    }

    /// When a schedule makes its next tasks.
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule).
    pub fn preview(&self, queue: &str, name: &str, query: PreviewQuery) -> Result<PreviewBody, ClientError> {
        let path = format!("{}/preview", schedule_path(queue, name));
        self.exchange.send(Call::new("GET", path).query(&query.to_query()))?.body()
    }

    /// Lays down how a queue hands its tasks out: all of its settings, in place of those before.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn configure(&self, queue: &str, settings: &SettingsBody) -> Result<QueueBody, ClientError> {
        let call = Call::new("PUT", self::queue(queue)).json(settings.to_json());
        self.exchange.send(call.twice_is_once())?.body()
    }

    /// Changes some settings of a queue: `patch` is a JSON object as [`SettingsBody::patched`] reads it.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn reconfigure(&self, queue: &str, patch: Vec<u8>) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("PATCH", self::queue(queue)).json(patch).twice_is_once())?.body()
    }

    /// Nothing is leased from the queue from now on, until it is resumed or for as long as the body says.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn pause(&self, queue: &str, body: &PauseBody) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("POST", queue_path(queue, "pause")).json(body.to_json()))?.body()
    }

    /// The queue takes no new task from now on; those that are there are worked off.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn drain(&self, queue: &str) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("POST", queue_path(queue, "drain")).twice_is_once())?.body()
    }

    /// Ends a pause and a drain.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn resume(&self, queue: &str) -> Result<QueueBody, ClientError> {
        self.exchange.send(Call::new("POST", queue_path(queue, "resume")).twice_is_once())?.body()
    }

    /// Moves the virtual clock and returns its new time, in ms since 1970. Answers once all that fell due is
    /// ready.
    ///
    /// # Errors
    ///
    /// As a problem: 404 on a server that runs on real time; see [`ClientError`].
    pub fn advance(&self, by_ms: u64) -> Result<i64, ClientError> {
        let call = Call::new("POST", "/v1/clock/advance".to_owned())
            .json(AdvanceBody { by_ms }.to_json())
            .timeout(ADVANCE_TIMEOUT);
        Ok(self.exchange.send(call)?.body::<NowBody>()?.now_ms)
    }

    /// How many tasks fall due when, of a queue or of all.
    ///
    /// # Errors
    ///
    /// See [`ClientError`].
    pub fn forecast(&self, query: &ForecastQuery) -> Result<ForecastBody, ClientError> {
        self.exchange.send(Call::new("GET", "/v1/forecast".to_owned()).query(&query.to_query()))?.body()
    }

    /// The server takes no new tasks from now on, in whatever queue; those that are there are worked off. A new start ends it, too.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`].
    pub fn drain_server(&self) -> Result<DrainBody, ClientError> {
        self.exchange.send(Call::new("POST", "/v1/drain".to_owned()).twice_is_once())?.body()
    }

    /// Ends the drain of the server. What queues were told for themselves stays.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`].
    pub fn resume_server(&self) -> Result<DrainBody, ClientError> {
        self.exchange.send(Call::new("POST", "/v1/resume".to_owned()).twice_is_once())?.body()
    }

    /// The server's figures, as the page of OpenMetrics that Prometheus reads.
    ///
    /// # Errors
    ///
    /// As a problem: 403 for a token that has a scope; see [`ClientError`].
    pub fn metrics(&self) -> Result<String, ClientError> {
        self.exchange.send(Call::new("GET", "/metrics".to_owned()))?.text()
    }

    /// Asks whether the server takes calls.
    ///
    /// # Errors
    ///
    /// Any error says that it does not, or not yet; see [`ClientError`].
    pub fn ready(&self) -> Result<(), ClientError> {
        self.exchange.send(Call::new("GET", "/readyz".to_owned())).map(|_| ())
    }
}

fn stored(answer: &Answer) -> Result<Stored, ClientError> {
    Ok(Stored { created: answer.status == 201, task: answer.body()? })
}

fn queue(queue: &str) -> String {
    format!("/v1/queues/{}", segment(queue))
}

fn queue_path(queue: &str, below: &str) -> String {
    format!("/v1/queues/{}/{below}", segment(queue))
}

fn schedule_path(queue: &str, name: &str) -> String {
    format!("{}/{}", queue_path(queue, "schedules"), segment(name))
}

fn task_path(queue: &str, key: &str) -> String {
    format!("/v1/queues/{}/tasks/{}", segment(queue), segment(key))
}
