//! [`Answer`]: what the server has to say to a pipeline, message by message. Pure: it sees no socket.

use std::sync::Arc;

use postgres_protocol::message::backend::Message;

use super::error::DbError;
use super::message;
use super::pipeline::StepResult;
use super::row::{self, Column, Row};

/// Where the columns of a step come from.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// The step is parsed and described in this flight.
    Parsed,
    /// An earlier step of this flight (its index) has parsed the same statement.
    Shared(usize),
    /// The connection knows the columns.
    Known(Arc<[Column]>),
}

/// Whether a transaction is open.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    /// None is open.
    Idle,
    Open,
    /// A transaction is open, and an error ended its work: the database takes only `ROLLBACK`.
    Failed,
}

/// Why a conversation is over.
#[derive(Clone, Debug)]
pub(crate) enum Broken {
    /// The database ended the session.
    Fatal(Box<DbError>),
    /// The message does not belong here, or its bytes are wrong.
    Violation(String),
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    Parse,
    ParameterDescription,
    RowDescription,
    Bind,
    Rows,
}

/// The answer to a pipeline, as far as it has come.
#[derive(Debug)]
pub(crate) struct Answer {
    plans: Vec<Plan>,
    results: Vec<StepResult>,
    /// The columns of the steps so far.
    columns: Vec<Option<Arc<[Column]>>>,
    step: usize,
    stage: Stage,
    error: Option<(usize, Box<DbError>)>,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Complete {
    pub(crate) transaction: Transaction,
    /// The columns of each step that was described, by index.
    pub(crate) columns: Vec<Option<Arc<[Column]>>>,
    pub(crate) outcome: Result<Vec<StepResult>, (usize, Box<DbError>)>,
}

impl Answer {
    pub(crate) fn new(plans: Vec<Plan>) -> Self {
        let count = plans.len();
        let mut answer = Self {
            plans,
            results: vec![StepResult::default(); count],
            columns: vec![None; count],
            step: 0,
            stage: Stage::Parse,
            error: None,
        };
        answer.enter(0);
        answer
    }

    /// The error of the database that has come so far.
    pub(crate) fn error(&self) -> Option<&DbError> {
        self.error.as_ref().map(|(_, error)| &**error)
    }

    /// Takes the next message. Returns whether the server is ready for the next query.
    pub(crate) fn take(&mut self, message: Message) -> Result<Option<Transaction>, Broken> {
        match message {
            Message::NoticeResponse(body) => {
                let notice = message::notice(body.fields()).map_err(Broken::Violation)?;
                let last = self.results.len().saturating_sub(1);
                if let Some(result) = self.results.get_mut(self.step.min(last)) {
                    result.notices.push(notice);
                }
                Ok(None)
            }
            Message::ParameterStatus(_) | Message::NotificationResponse(_) => Ok(None),
            Message::ErrorResponse(body) => {
                let error = Box::new(message::db_error(body.fields()).map_err(Broken::Violation)?);
                if !error.is_error() {
                    return Err(Broken::Fatal(error));
                }
                if self.error.is_some() {
                    return Err(Broken::Violation("the database sent a second error".to_owned()));
                }
                self.error = Some((self.step, error));
                Ok(None)
            }
            Message::ReadyForQuery(body) => {
                if self.error.is_none() && self.step != self.results.len() {
                    return Err(self.unexpected("ReadyForQuery"));
                }
                transaction(body.status()).map(Some)
            }
            message if self.error.is_some() => Err(self.unexpected(message::name(&message))),
            message => self.advance(&message).map(|()| None),
        }
    }

    /// Returns the answer, after [`Self::take`] has returned a transaction.
    pub(crate) fn complete(self, transaction: Transaction) -> Complete {
        let outcome = match self.error {
            Some(error) => Err(error),
            None => Ok(self.results),
        };
        Complete { transaction, columns: self.columns, outcome }
    }

    fn advance(&mut self, message: &Message) -> Result<(), Broken> {
        let step = self.step;
        let (Some(result), Some(columns)) = (self.results.get_mut(step), self.columns.get_mut(step)) else {
            return Err(self.unexpected(message::name(message)));
        };
        match (self.stage, message) {
            (Stage::Parse, Message::ParseComplete) => self.stage = Stage::ParameterDescription,
            (Stage::ParameterDescription, Message::ParameterDescription(_)) => {
                self.stage = Stage::RowDescription;
            }
            (Stage::RowDescription, Message::RowDescription(body)) => {
                *columns = Some(row::columns(body).map_err(Broken::Violation)?);
                self.stage = Stage::Bind;
            }
            (Stage::RowDescription, Message::NoData) => {
                *columns = Some(Arc::new([]));
                self.stage = Stage::Bind;
            }
            (Stage::Bind, Message::BindComplete) => self.stage = Stage::Rows,
            (Stage::Rows, Message::DataRow(body)) => {
                let Some(columns) = columns else {
                    return Err(Broken::Violation("a row came without a description".to_owned()));
                };
                result.rows.push(Row::new(columns, body).map_err(Broken::Violation)?);
            }
            (Stage::Rows, Message::CommandComplete(body)) => {
                result.tag = body.tag().map_err(|error| Broken::Violation(error.to_string()))?.to_owned();
                self.enter(step + 1);
            }
            (Stage::Rows, Message::EmptyQueryResponse) => self.enter(step + 1),
            _ => return Err(self.unexpected(message::name(message))),
        }
        Ok(())
    }

    fn enter(&mut self, step: usize) {
        self.step = step;
        self.stage = match self.plans.get(step) {
            Some(Plan::Parsed) => Stage::Parse,
            Some(Plan::Shared(earlier)) => {
                self.columns[step] = self.columns.get(*earlier).cloned().flatten();
                Stage::Bind
            }
            Some(Plan::Known(columns)) => {
                self.columns[step] = Some(Arc::clone(columns));
                Stage::Bind
            }
            None => Stage::Rows,
        };
    }

    fn unexpected(&self, name: &str) -> Broken {
        Broken::Violation(format!("the database sent {name} at step {} ({:?})", self.step, self.stage))
    }
}

/// Reads the status of `ReadyForQuery`.
pub(crate) fn transaction(status: u8) -> Result<Transaction, Broken> {
    match status {
        b'I' => Ok(Transaction::Idle),
        b'T' => Ok(Transaction::Open),
        b'E' => Ok(Transaction::Failed),
        other => Err(Broken::Violation(format!("the database has the status {other}"))),
    }
}
