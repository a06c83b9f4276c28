//! A client whose calls and answers are all recorded.

use tickwheel_api::{
    BatchLine, BatchOp, BatchResult, CancelOutcome, Due, LeaseBody, LeasedTask, ListQuery, PatchBody,
    PayloadBody, Problem, ProblemKind, PutBody, PutMode, PutQuery, RevokeQuery, TaskBody, TokenResult,
};
use tickwheel_client::blocking::Client;
use tickwheel_client::{ClientError, Outcome};

use crate::faults::history::{Answer, Call, Delivery, History, Key, any_of, queue_of};
use crate::faults::payload::{number_of, payload_of};

/// The duration of all leases (ms). It is longer than any test, so no lease runs out by itself. If a lease ends,
/// there is only one possible reason.
const LEASE_MS: u64 = 3_600_000;

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Caller<'a> {
    client: Client,
    history: &'a History,
}

/// A task that was delivered and not acked.
#[derive(Clone, Debug)]
pub(crate) struct Leased {
    pub(crate) key: Key,
    pub(crate) delivery: Delivery,
    pub(crate) token: String,
}

/// A call without a definite answer.
#[derive(Debug)]
pub(crate) enum Silence {
    /// No server listens.
    Gone,
    /// The server answered with this status, so the outcome is unknown.
    Refused(u16),
}

pub(crate) type Said<T> = Result<T, Silence>;

impl<'a> Caller<'a> {
    pub(crate) fn new(url: &str, history: &'a History) -> Self {
        Self { client: Client::new(url).expect("the server's own URL"), history }
    }

    pub(crate) fn history(&self) -> &'a History {
        self.history
    }

    pub(crate) fn put(&self, key: &Key, due_ms: i64, number: u32) -> Said<Answer> {
        let payload = PayloadBody::json(payload_of(key, number));
        let body = PutBody { due: Due::At(due_ms), payload, ..PutBody::default() };
        self.call(key, Call::Put { due_ms, number }, || {
            let stored = self.client.put(queue_of(key), key, &body, PutQuery::default(), None)?;
            let version = stored.task.version;
            Ok(if stored.created { Answer::Created { version } } else { Answer::Changed { version } })
        })
    }

    pub(crate) fn patch(&self, key: &Key, due_ms: i64) -> Said<Answer> {
        let body = PatchBody { due: Some(Due::At(due_ms)), ..PatchBody::default() };
        self.call(key, Call::Patch { due_ms }, || {
            let task = self.client.patch(queue_of(key), key, &body, RevokeQuery::default(), None)?;
            Ok(Answer::Changed { version: task.version })
        })
    }

    pub(crate) fn cancel(&self, key: &Key) -> Said<Answer> {
        self.call(key, Call::Cancel, || {
            Ok(of_cancel(self.client.cancel(queue_of(key), key, RevokeQuery::default(), None)?))
        })
    }

    pub(crate) fn get(&self, key: &Key) -> Said<Answer> {
        self.call(key, Call::Get, || Ok(self.live(&self.client.get(queue_of(key), key)?)))
    }

    /// Sends lines about different keys of one queue.
    pub(crate) fn batch(&self, lines: &[(Key, Call)]) -> Said<()> {
        let sent: Vec<BatchLine> = lines.iter().map(|(key, call)| line(key, *call)).collect();
        let open: Vec<_> = lines.iter().map(|(key, call)| self.history.open(key, *call)).collect();
        let answer = self.history.during(|| self.client.batch(queue_of(&lines[0].0), &sent));
        match answer {
            Ok(results) => {
                let mut worst = Ok(());
                for ((open, result), (_, call)) in open.into_iter().zip(results).zip(lines) {
                    match of_line(*call, &result) {
                        Some(answer) => self.history.close(open, answer),
                        None => worst = Err(Silence::Refused(result.status)),
                    }
                    if result.status == 507 {
                        worst = Err(Silence::Refused(507));
                    }
                }
                worst
            }
            Err(error) => {
                let silence = self.silence(&error);
                if never_happened(&error) {
                    open.into_iter().for_each(|open| self.history.close(open, Answer::Refused));
                }
                Err(silence)
            }
        }
    }

    /// Leases ready tasks.
    pub(crate) fn lease(&self, queue: &str, max: usize, wait_ms: u64) -> Said<Vec<Leased>> {
        let sent = self.history.now();
        let body = LeaseBody { max, lease_ms: Some(LEASE_MS), wait_ms, worker: None };
        match self.history.during(|| self.client.lease(queue, &body)) {
            Ok(tasks) => Ok(tasks.into_iter().map(|task| self.delivered(task, sent)).collect()),
            Err(error) => {
                let silence = self.silence(&error);
                if !never_happened(&error) {
                    self.history.lost(&any_of(queue).into(), Call::Lease, sent);
                }
                Err(silence)
            }
        }
    }

    /// Acks tasks.
    pub(crate) fn ack(&self, queue: &str, leased: &[Leased]) -> Said<Vec<Answer>> {
        let open: Vec<_> =
            leased.iter().map(|one| self.history.open(&one.key, Call::Ack(one.delivery))).collect();
        let tokens = leased.iter().map(|one| one.token.clone()).collect();
        match self.history.during(|| self.client.ack(queue, tokens)) {
            Ok(results) => {
                let answers: Vec<Answer> = results.into_iter().map(of_ack).collect();
                open.into_iter().zip(&answers).for_each(|(open, answer)| self.history.close(open, *answer));
                Ok(answers)
            }
            Err(error) => {
                let silence = self.silence(&error);
                if never_happened(&error) {
                    open.into_iter().for_each(|open| self.history.close(open, Answer::Refused));
                }
                Err(silence)
            }
        }
    }

    /// Lists all live tasks of a queue, page by page.
    pub(crate) fn list(&self, queue: &str) -> Said<Vec<(Key, Answer)>> {
        let mut listed = Vec::new();
        let mut query = ListQuery { limit: 1_000, ..ListQuery::default() };
        loop {
            let page = self.history.during(|| self.client.list(queue, &query));
            let page = page.map_err(|error| self.silence(&error))?;
            listed.extend(page.tasks.iter().map(|task| (Key::from(task.key.as_str()), self.live(task))));
            match page.next_cursor {
                Some(cursor) => query.cursor = Some(cursor),
                None => return Ok(listed),
            }
        }
    }

    fn call(
        &self,
        key: &Key,
        call: Call,
        make: impl FnOnce() -> Result<Answer, ClientError>,
    ) -> Said<Answer> {
        let open = self.history.open(key, call);
        let error = match self.history.during(make) {
            Ok(answer) => {
                self.history.close(open, answer);
                return Ok(answer);
            }
            Err(error) => error,
        };
        if let Some(answer) = error.problem().and_then(of_problem) {
            self.history.close(open, answer);
            return Ok(answer);
        }
        if never_happened(&error) {
            self.history.close(open, Answer::Refused);
        }
        Err(self.silence(&error))
    }

    fn live(&self, task: &TaskBody) -> Answer {
        let payload = task.payload.as_ref().expect("a task of a get has its payload");
        let number = self.number(&task.key, &payload.bytes);
        Answer::Live { due_ms: task.due_at_ms, number, version: task.version }
    }

    fn delivered(&self, task: LeasedTask, sent: u64) -> Leased {
        let received_ms = self.history.wall_ms();
        if received_ms < task.due_at_ms {
            let early_ms = task.due_at_ms - received_ms;
            self.history.break_promise(format!("EARLY: {} came {early_ms} ms before its time", task.key));
        }
        let number = self.number(&task.key, &task.payload.bytes);
        let delivery = Delivery { serial: self.history.delivery(), due_ms: task.due_at_ms, number };
        let key = Key::from(task.key);
        self.history.saw(&key, Call::Lease, sent, Answer::Delivered(delivery));
        Leased { key, delivery, token: task.token }
    }

    fn number(&self, key: &str, payload: &[u8]) -> u32 {
        number_of(key, payload).unwrap_or_else(|| {
            let shown = String::from_utf8_lossy(&payload[..payload.len().min(100)]).into_owned();
            self.history.break_promise(format!("ANOTHER PAYLOAD: {key} carries {shown}"));
            u32::MAX
        })
    }

    fn silence(&self, error: &ClientError) -> Silence {
        match error {
            ClientError::Unreachable { .. } | ClientError::NoAnswer { .. } => Silence::Gone,
            ClientError::Problem(problem) if problem.status >= 500 => Silence::Refused(problem.status),
            other => panic!("an answer that no call of ours should get: {other:?}"),
        }
    }
}

/// Whether the call had no effect for certain: the server was not reached, or it answered that the disk is full.
fn never_happened(error: &ClientError) -> bool {
    let full = |problem: &Problem| problem.kind() == Some(ProblemKind::StorageFull);
    error.outcome() == Outcome::NotSent || error.problem().is_some_and(full)
}

fn line(key: &Key, call: Call) -> BatchLine {
    let op = match call {
        Call::Put { due_ms, number } => {
            let payload = PayloadBody::json(payload_of(key, number));
            BatchOp::Put {
                body: PutBody { due: Due::At(due_ms), payload, ..PutBody::default() },
                mode: PutMode::Upsert,
            }
        }
        Call::Patch { due_ms } => {
            BatchOp::Patch(PatchBody { due: Some(Due::At(due_ms)), ..PatchBody::default() })
        }
        Call::Cancel => BatchOp::Cancel,
        Call::Ack(_) | Call::Get | Call::Lease => unreachable!("a batch puts, patches and cancels"),
    };
    BatchLine { key: key.to_string(), if_match: None, revoke: false, op }
}

/// The answer of a line; `None` if its outcome is unknown.
fn of_line(call: Call, result: &BatchResult) -> Option<Answer> {
    match (call, result.status, result.version, result.result) {
        (_, 507, _, _) => Some(Answer::Refused),
        (_, 500.., _, _) => None,
        (_, 201, Some(version), _) => Some(Answer::Created { version }),
        (Call::Put { .. } | Call::Patch { .. }, 200, Some(version), _) => Some(Answer::Changed { version }),
        (_, _, _, Some(outcome)) => Some(of_cancel(outcome)),
        (_, _, _, None) => {
            let problem = result.problem.as_ref();
            let answer = problem.and_then(of_problem);
            Some(answer.unwrap_or_else(|| panic!("a line of a batch was answered with {result:?}")))
        }
    }
}

fn of_problem(problem: &Problem) -> Option<Answer> {
    match (problem.result, problem.kind()) {
        (Some(outcome), _) => Some(of_cancel(outcome)),
        (None, Some(ProblemKind::NotFound)) => Some(Answer::NotFound),
        (None, Some(ProblemKind::Done)) => Some(Answer::Done),
        (None, Some(ProblemKind::Leased)) => Some(Answer::Leased),
        (None, _) => None,
    }
}

fn of_cancel(outcome: CancelOutcome) -> Answer {
    match outcome {
        CancelOutcome::Cancelled => Answer::Cancelled,
        CancelOutcome::Leased => Answer::Leased,
        CancelOutcome::Done => Answer::Done,
        CancelOutcome::NotFound => Answer::NotFound,
        CancelOutcome::Revoked => panic!("nobody asked to revoke"),
    }
}

fn of_ack(result: TokenResult) -> Answer {
    match result {
        TokenResult::Acked => Answer::Acked,
        TokenResult::Expired => Answer::Expired,
        other => panic!("an ack was answered with {other:?}"),
    }
}
