//! [`Connection`]: one session of a database.
//!
//! Call [`Connection::open`], then [`Connection::run`] or [`Connection::simple`] until one of them says that the
//! connection is lost. It is one thread's: nothing runs in the background, and what the server says in between is read
//! with the next run.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use postgres_protocol::Oid;
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend::{self, BindError};

use super::answer::{self, Answer, Broken, Complete, Plan, Transaction};
use super::error::{DbError, Notice, RunError};
use super::message::{self, MESSAGE_BYTES_MAX};
use super::pipeline::{Pipeline, Sql, StepResult};
use super::row::Column;
use super::startup::{self, Login, Session, StartError};
use super::transport::{Transport, TransportError};

/// The server takes no message that is longer: the limit of its memory for one value is 1 GiB less one byte.
const SENT_BYTES_MAX: usize = (1 << 30) - 1;

/// A statement that the server keeps: its text and the types of its parameters.
type Key = (&'static str, Box<[Oid]>);

/// One session of a database.
pub(crate) struct Connection {
    transport: Transport,
    peer: String,
    backend_pid: i32,
    parameters: BTreeMap<String, String>,
    statements: BTreeMap<Key, Statement>,
    /// The number in the name of the next statement. A name is never used again.
    next_statement: u64,
    transaction: Transaction,
    is_lost: bool,
}

#[derive(Clone)]
struct Statement {
    name: String,
    columns: Arc<[Column]>,
}

impl Connection {
    /// Starts a session on a stream that is connected.
    pub(crate) fn start(
        mut transport: Transport,
        peer: String,
        login: &Login<'_>,
        deadline: Instant,
    ) -> Result<Self, StartError> {
        let Session { parameters, backend_pid } = startup::start(&mut transport, login, deadline)?;
        Ok(Self {
            transport,
            peer,
            backend_pid,
            parameters,
            statements: BTreeMap::new(),
            next_statement: 0,
            transaction: Transaction::Idle,
            is_lost: false,
        })
    }

    /// A setting that the server reports, such as `server_version` or `in_hot_standby`, as of the last run.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    pub(crate) fn backend_pid(&self) -> i32 {
        self.backend_pid
    }

    /// The host that was reached: `host:port`.
    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    #[cfg(test)]
    pub(crate) fn is_tls(&self) -> bool {
        self.transport.is_tls()
    }

    /// Whether a transaction is open after the last run.
    #[cfg(test)]
    pub(crate) fn transaction(&self) -> Transaction {
        self.transaction
    }

    /// Whether the connection has ended, so that a new one is needed.
    #[cfg(test)]
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Runs the steps in one flight and returns their answers, one for each step. A transaction that is open after an
    /// error is rolled back before the error is returned.
    ///
    /// `deadline` of `None` waits as the keepalives let it. Nothing is ever cancelled: after a time-out the server may
    /// still finish the work.
    ///
    /// # Errors
    /// [`RunError`].
    pub(crate) fn run(
        &mut self,
        pipeline: &Pipeline<'_>,
        deadline: Option<Instant>,
    ) -> Result<Vec<StepResult>, RunError> {
        let ran = self.fly(pipeline, deadline);
        if matches!(ran, Err(RunError::Database { .. })) {
            self.roll_back(deadline);
        }
        ran
    }

    /// As [`Self::run`], but a transaction that an error has spoilt stays open.
    pub(super) fn fly(
        &mut self,
        pipeline: &Pipeline<'_>,
        deadline: Option<Instant>,
    ) -> Result<Vec<StepResult>, RunError> {
        self.check()?;
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        let Flight { plans, parsed } = match self.encode(pipeline) {
            Ok(flight) => flight,
            Err(why) => {
                self.transport.outgoing().clear();
                return Err(RunError::Invalid(why));
            }
        };
        let mut answer = Answer::new(plans);
        let transaction = loop {
            match self.next(deadline).and_then(|message| answer.take(message).map_err(Failure::Broken)) {
                Ok(None) => {}
                Ok(Some(transaction)) => break transaction,
                Err(failure) => return Err(self.lost(failure, answer.error())),
            }
        };
        let Complete { transaction, mut columns, outcome } = answer.complete(transaction);
        self.transaction = transaction;
        self.transport.trim();
        for (step, key, name) in parsed {
            if let Some(columns) = columns.get_mut(step).and_then(Option::take) {
                self.statements.insert(key, Statement { name, columns });
            }
        }
        let (step, error) = match outcome {
            Ok(results) => return Ok(results),
            Err(failed) => failed,
        };
        // The table of the statement has changed, or the server has forgotten the statement: the next run parses it.
        if matches!(&*error.code, "0A000" | "26000")
            && let Some(step) = pipeline.steps().get(step)
            && let Sql::Kept(sql) = step.sql
        {
            let oids = step.params.iter().map(|param| param.oid()).collect();
            self.statements.remove(&(sql, oids));
        }
        Err(RunError::Database { step, error })
    }

    /// Runs a text of several statements, such as a schema, as one transaction. Rows are dropped.
    ///
    /// # Errors
    /// [`RunError`], with the number of statements that were done before as the step.
    pub(crate) fn simple(&mut self, sql: &str, deadline: Option<Instant>) -> Result<Vec<Notice>, RunError> {
        self.check()?;
        if let Err(error) = frontend::query(sql, self.transport.outgoing()) {
            self.transport.outgoing().clear();
            return Err(RunError::Invalid(error.to_string()));
        }
        let (mut notices, mut done, mut failed) = (Vec::new(), 0, None);
        let transaction = loop {
            let message = match self.next(deadline) {
                Ok(message) => message,
                Err(failure) => return Err(self.lost(failure, failed.as_deref())),
            };
            let taken = match message {
                Message::NoticeResponse(body) => message::notice(body.fields())
                    .map(|notice| notices.push(notice))
                    .map_err(Broken::Violation),
                Message::CommandComplete(_) | Message::EmptyQueryResponse => {
                    done += 1;
                    Ok(())
                }
                Message::ErrorResponse(body) => match message::db_error(body.fields()) {
                    Ok(error) if error.is_error() => {
                        failed = Some(Box::new(error));
                        Ok(())
                    }
                    Ok(error) => Err(Broken::Fatal(Box::new(error))),
                    Err(why) => Err(Broken::Violation(why)),
                },
                Message::ReadyForQuery(body) => match answer::transaction(body.status()) {
                    Ok(transaction) => break transaction,
                    Err(broken) => Err(broken),
                },
                Message::RowDescription(_)
                | Message::DataRow(_)
                | Message::ParameterStatus(_)
                | Message::NotificationResponse(_) => Ok(()),
                other => {
                    Err(Broken::Violation(format!("the database sent {} to a text", message::name(&other))))
                }
            };
            if let Err(broken) = taken {
                return Err(self.lost(Failure::Broken(broken), failed.as_deref()));
            }
        };
        self.transaction = transaction;
        match failed {
            None => Ok(notices),
            Some(error) => {
                self.roll_back(deadline);
                Err(RunError::Database { step: done, error })
            }
        }
    }

    /// Reads what the server has said since the last run. A connection that has ended is found before anything is
    /// sent, so that its outcome is known: nothing.
    fn check(&mut self) -> Result<(), RunError> {
        if self.is_lost {
            let why = "it was lost before".to_owned();
            return Err(RunError::Lost { why, error: None, is_sent: false });
        }
        let mut read = || -> Result<(), Failure> {
            loop {
                // The bytes that came before the end may tell why it came.
                let moved = self.transport.poke();
                while let Some(message) = self.transport.message_if_there(MESSAGE_BYTES_MAX)? {
                    match message {
                        Message::ParameterStatus(body) => note(&mut self.parameters, &body),
                        Message::NoticeResponse(_) | Message::NotificationResponse(_) => {}
                        Message::ErrorResponse(body) => {
                            let error = message::db_error(body.fields()).map_err(Broken::Violation)?;
                            return Err(Broken::Fatal(Box::new(error)).into());
                        }
                        other => {
                            let name = message::name(&other);
                            return Err(Broken::Violation(format!("the database sent {name} unasked")).into());
                        }
                    }
                }
                if !moved? {
                    return Ok(());
                }
            }
        };
        match read() {
            Ok(()) => Ok(()),
            Err(failure) => match self.lost(failure, None) {
                RunError::Lost { why, error, .. } => Err(RunError::Lost { why, error, is_sent: false }),
                other => Err(other),
            },
        }
    }

    /// Writes the messages of a pipeline.
    fn encode(&mut self, pipeline: &Pipeline<'_>) -> Result<Flight, String> {
        let mut plans = Vec::with_capacity(pipeline.len());
        let mut parsed: Vec<(usize, Key, String)> = Vec::new();
        for (index, step) in pipeline.steps().iter().enumerate() {
            let oids: Box<[Oid]> = step.params.iter().map(|param| param.oid()).collect();
            let (plan, name, text) = match &step.sql {
                Sql::Once(sql) => (Plan::Parsed, String::new(), Some(&**sql)),
                Sql::Kept(sql) => {
                    let key = (*sql, oids.clone());
                    if let Some(statement) = self.statements.get(&key) {
                        (Plan::Known(Arc::clone(&statement.columns)), statement.name.clone(), None)
                    } else if let Some((earlier, _, name)) = parsed.iter().find(|(_, known, _)| *known == key)
                    {
                        (Plan::Shared(*earlier), name.clone(), None)
                    } else {
                        let name = format!("t{}", self.next_statement);
                        self.next_statement += 1;
                        parsed.push((index, key, name.clone()));
                        (Plan::Parsed, name, Some(*sql))
                    }
                }
            };
            let to = self.transport.outgoing();
            let before = to.len();
            let sized = |error: io::Error| format!("step {index}: {error}");
            if let Some(sql) = text {
                frontend::parse(&name, sql, oids.iter().copied(), to).map_err(sized)?;
                frontend::describe(b'S', &name, to).map_err(sized)?;
            }
            frontend::bind("", &name, [1], &step.params, |param, to| param.encode(to), [1], to).map_err(
                |error| match error {
                    BindError::Conversion(error) => format!("step {index}: {error}"),
                    BindError::Serialization(error) => sized(error),
                },
            )?;
            frontend::execute("", 0, to).map_err(sized)?;
            if to.len() - before > SENT_BYTES_MAX {
                return Err(format!(
                    "step {index} has {} bytes; the limit is {SENT_BYTES_MAX}",
                    to.len() - before
                ));
            }
            plans.push(plan);
        }
        frontend::sync(self.transport.outgoing());
        Ok(Flight { plans, parsed })
    }

    /// Waits for the next message. A setting that it reports is noted.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Message, Failure> {
        let message = self.transport.message(MESSAGE_BYTES_MAX, deadline)?;
        if let Message::ParameterStatus(body) = &message {
            note(&mut self.parameters, body);
        }
        Ok(message)
    }

    /// Ends a transaction that an error has spoilt. If that fails, the connection is lost; the error stays definite,
    /// because the server never commits such a transaction.
    fn roll_back(&mut self, deadline: Option<Instant>) {
        if self.transaction == Transaction::Idle {
            return;
        }
        if frontend::query("ROLLBACK", self.transport.outgoing()).is_err() {
            self.is_lost = true;
            return;
        }
        loop {
            match self.next(deadline) {
                Ok(Message::ReadyForQuery(body)) if body.status() == b'I' => {
                    self.transaction = Transaction::Idle;
                    return;
                }
                Ok(
                    Message::CommandComplete(_)
                    | Message::NoticeResponse(_)
                    | Message::ParameterStatus(_)
                    | Message::NotificationResponse(_),
                ) => {}
                Ok(_) | Err(_) => {
                    self.is_lost = true;
                    return;
                }
            }
        }
    }

    /// Notes that the connection has ended. `error` is what the database said before.
    fn lost(&mut self, failure: Failure, error: Option<&DbError>) -> RunError {
        self.is_lost = true;
        let before = error.map(|error| Box::new(error.clone()));
        let (why, error) = match failure {
            Failure::Transport(error) => (error.to_string(), before),
            Failure::Broken(Broken::Violation(why)) => (why, before),
            Failure::Broken(Broken::Fatal(error)) => (error.to_string(), Some(error)),
        };
        RunError::Lost { why, error, is_sent: true }
    }
}

impl Drop for Connection {
    /// Says goodbye, so that the server need not find the end by itself.
    fn drop(&mut self) {
        if !self.is_lost {
            frontend::terminate(self.transport.outgoing());
            self.transport.farewell();
        }
    }
}

/// A pipeline in messages.
struct Flight {
    plans: Vec<Plan>,
    /// The statements that are to be kept: the step, the key, the name.
    parsed: Vec<(usize, Key, String)>,
}

enum Failure {
    Transport(TransportError),
    Broken(Broken),
}

impl From<TransportError> for Failure {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

fn note(
    parameters: &mut BTreeMap<String, String>,
    body: &postgres_protocol::message::backend::ParameterStatusBody,
) {
    if let (Ok(name), Ok(value)) = (body.name(), body.value()) {
        parameters.insert(name.to_owned(), value.to_owned());
    }
}
